// The settings of one session: the user's settings.json with the project's on top (CA-150 to CA-156).
//
// Nothing is thrown away: unknown keys and values that cannot be used stay in the file, and a file that cannot be read
// is reported and never written (CA-152, FF-115). A change writes its own key only, into the file as it is at that
// moment, so that two programs can change different keys at once (CA-153, FF-111).
#pragma once

#include <chrono>
#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.h"
#include "ai/model.h"
#include "base/error.h"
#include "base/json.h"

namespace tau::coding {

enum class SettingsScope { kGlobal, kProject };

class Settings {
 public:
  /// Reads both files; the project's only when the project is trusted (CA-163). Never fails: see `take_warnings`.
  static Settings load(std::filesystem::path agent_folder, const std::filesystem::path& cwd, bool project_trusted);
  /// Settings without files, for programs that use tau as a library.
  static Settings in_memory(json::object settings = {});

  /// What was wrong with the files and is now used instead; each warning is returned once.
  std::vector<std::string> take_warnings();

  // ---- changing ------------------------------------------------------------------------------------------------
  /// Sets the member at a dotted path ("compaction.enabled"), in memory and in the file of the scope. The value in
  /// memory holds also when the file could not be written (CA-334). Fails for an untrusted project without any change.
  std::expected<void, Error> set(std::string_view path, const json::value& v,
                                 SettingsScope scope = SettingsScope::kGlobal);
  std::expected<void, Error> remove(std::string_view path, SettingsScope scope = SettingsScope::kGlobal);
  /// Changes for this run only, on top of both files.
  void override_with(const json::object& overrides);

  // ---- the values as written -----------------------------------------------------------------------------------
  const json::object& effective() const { return effective_; }
  const json::object& global() const { return global_.values; }
  const json::object& project() const { return project_.values; }
  bool project_trusted() const { return project_trusted_; }
  const std::filesystem::path& agent_folder() const { return agent_folder_; }

  // ---- model ---------------------------------------------------------------------------------------------------
  std::optional<std::string> default_provider() const { return text("defaultProvider"); }
  std::optional<std::string> default_model() const { return text("defaultModel"); }
  std::optional<ai::ThinkingLevel> default_thinking_level() const;
  /// What was last chosen for this model.
  std::optional<ai::ThinkingLevel> thinking_level_of(std::string_view provider, std::string_view model) const;
  /// Patterns of the models to cycle through; empty = all.
  std::vector<std::string> enabled_models() const { return texts("enabledModels"); }
  std::map<ai::ThinkingLevel, double> thinking_budgets() const;

  // ---- run -----------------------------------------------------------------------------------------------------
  std::string transport() const { return *text("transport"); }
  agent::QueueMode steering_mode() const { return queue_mode("steeringMode"); }
  agent::QueueMode follow_up_mode() const { return queue_mode("followUpMode"); }

  struct Compaction {
    bool enabled;
    double reserve_tokens;
    double keep_recent_tokens;
  };
  Compaction compaction() const;
  struct BranchSummary {
    double reserve_tokens;
    bool skip_prompt;
  };
  BranchSummary branch_summary() const;

  struct Retry {  // of a turn, by the session
    bool enabled;
    int max_retries;
    std::chrono::milliseconds base_delay;
  };
  Retry retry() const;
  struct RequestRetry {  // inside one request
    std::optional<std::chrono::milliseconds> timeout;
    std::optional<int> max_retries;
    std::chrono::milliseconds max_delay;
  };
  RequestRetry request_retry() const;

  std::optional<std::string> http_proxy() const { return text("httpProxy"); }
  std::chrono::milliseconds http_idle_timeout() const;  // 0 = no limit
  std::optional<std::chrono::milliseconds> websocket_connect_timeout() const;
  /// The limit of one request: retry.provider.timeoutMs, else the idle limit; no limit is 2147483647 ms (CA-223).
  std::chrono::milliseconds request_timeout() const;

  // ---- session and tools ---------------------------------------------------------------------------------------
  std::optional<std::string> session_folder() const { return text("sessionDir"); }
  /// Whether each record of a session waits for the disk ("record"), or the kernel writes it in its own time ("never").
  /// tau's own key: pi ignores it.
  bool syncs_each_record() const { return *text("sessionSync") == "record"; }
  std::optional<std::vector<std::string>> default_tools() const;
  std::optional<std::string> shell_path() const { return text("shellPath"); }
  std::optional<std::string> shell_command_prefix() const { return text("shellCommandPrefix"); }
  std::vector<std::string> npm_command() const { return texts("npmCommand"); }
  bool auto_resize_images() const { return flag("images.autoResize"); }
  bool block_images() const { return flag("images.blockImages"); }
  std::string default_project_trust() const { return *text("defaultProjectTrust"); }  // ask, always, never

  // ---- resources -----------------------------------------------------------------------------------------------
  /// Strings, or objects with "source" (CA-142), as written; of one scope.
  std::vector<json::value> packages(SettingsScope scope) const;
  /// The entries of "extensions", "skills", "prompts" or "themes" in one scope (CA-141).
  std::vector<std::string> resource_entries(std::string_view kind, SettingsScope scope) const;
  bool enable_skill_commands() const { return flag("enableSkillCommands"); }

  // ---- screen --------------------------------------------------------------------------------------------------
  std::optional<std::string> theme() const { return text("theme"); }
  std::string tui_mode() const { return *text("tuiMode"); }
  std::string fullscreen_exit_output() const { return *text("fullscreenExitOutput"); }
  std::string fullscreen_scrollbar() const { return *text("fullscreenScrollbar"); }
  bool fullscreen_copy_on_select() const { return flag("fullscreenCopyOnSelect"); }
  bool quiet_startup() const { return flag("quietStartup"); }
  bool collapse_changelog() const { return flag("collapseChangelog"); }
  bool hide_thinking_block() const { return flag("hideThinkingBlock"); }
  bool show_cache_miss_notices() const { return flag("showCacheMissNotices"); }
  std::string external_editor() const;  // the setting, $VISUAL, $EDITOR, nano
  std::string double_escape_action() const { return *text("doubleEscapeAction"); }
  std::string tree_filter_mode() const { return *text("treeFilterMode"); }
  int editor_padding() const;            // cells, 0 to 3
  int output_padding() const;            // cells, 0 or 1
  int autocomplete_max_visible() const;  // rows, 3 to 20
  bool show_hardware_cursor() const;     // or PI_HARDWARE_CURSOR=1
  struct Terminal {
    bool show_images;
    int image_width_cells;
    bool clear_on_shrink;  // or PI_CLEAR_ON_SHRINK=1
    bool show_progress;
    std::string hyperlinks, images, true_color;  // "auto", "true", "false"; for images also "kitty", "iterm2"
  };
  Terminal terminal() const;
  std::string code_block_indent() const { return *text("markdown.codeBlockIndent"); }
  std::string mermaid() const { return *text("markdown.mermaid"); }
  bool warn_about_anthropic_extra_usage() const { return flag("warnings.anthropicExtraUsage"); }

  // ---- housekeeping --------------------------------------------------------------------------------------------
  std::optional<std::string> last_changelog_version() const { return text("lastChangelogVersion"); }
  bool enable_install_telemetry() const { return flag("enableInstallTelemetry"); }
  bool enable_analytics() const { return flag("enableAnalytics"); }
  std::optional<std::string> tracking_id() const { return text("trackingId"); }

 private:
  struct File {
    std::filesystem::path path;         // empty = in memory only
    json::object values;                // migrated
    std::optional<std::string> broken;  // why it could not be read; it is never written then
  };
  std::expected<void, Error> change(std::string_view path, const json::value* v, SettingsScope scope);
  void read(File& file);
  void merge();
  /// The value of a key of the table when it can be used; null otherwise.
  const json::value* usable(std::string_view path) const;
  bool flag(std::string_view path) const;
  std::optional<double> number(std::string_view path) const;
  std::optional<std::string> text(std::string_view path) const;
  std::vector<std::string> texts(std::string_view path) const;
  std::optional<double> duration(std::string_view path) const;
  int whole(std::string_view path, int low, int high) const;
  agent::QueueMode queue_mode(std::string_view path) const;
  const json::object& values(SettingsScope scope) const;

  std::filesystem::path agent_folder_;
  bool project_trusted_ = false;
  File global_;
  File project_;
  json::object overrides_;
  json::object effective_;
  std::vector<std::string> warnings_;
};

/// `over` on `base`: objects merge member by member, everything else replaces (CA-151).
json::object merge_settings(json::object base, const json::object& over);

/// Old keys become their successors (CA-155). Applied after each read; written with the next change.
void migrate_settings(json::object& settings);

}  // namespace tau::coding
