#include "app/startup.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "ai/providers/api_registry.h"
#include "ai/providers/scripted.h"
#include "app/session_selection.h"
#include "base/files.h"
#include "coding/config/paths.h"
#include "coding/config/start_model.h"
#include "coding/resources/context_files.h"
#include "coding/resources/skills.h"
#include "coding/resources/system_prompt.h"
#include "coding/resources/trust.h"
#include "coding/tools/tool_environment.h"
#include "coding/tour.h"

namespace tau::app {

namespace fs = std::filesystem;

namespace {

using coding::Settings;

/// Options of the grammar whose modes and resources do not exist yet: refused, never ignored.
std::optional<std::string> not_yet(const Arguments& a) {
  const std::pair<bool, std::string_view> options[] = {
      {a.resume, "--resume"},
      {a.tui_mode.has_value(), "--tui-mode"},
      {!a.extensions.empty(), "--extension"},
      {!a.themes.empty() || a.use_theme, "--theme"},
  };
  for (const auto& [given, name] : options) {
    if (given) return fmt::format("{} is not available in this version of tau", name);
  }
  return std::nullopt;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The active tools, in their order (CA-2).
std::vector<coding::BuiltinTool> select_tools(const Arguments& arguments, const Settings& settings,
                                              std::vector<coding::BuiltinTool> all) {
  const std::optional<std::vector<std::string>> only = arguments.tools ? arguments.tools : settings.default_tools();
  std::erase_if(all, [&](const coding::BuiltinTool& tool) {
    const std::string& name = tool.tool.declaration.name;
    if (arguments.no_tools || arguments.no_builtin_tools || contains(arguments.exclude_tools, name)) return true;
    return only ? !contains(*only, name) : !tool.active_by_default;
  });
  return all;
}

struct Prompt {
  std::string text;
  std::vector<std::string> warnings;
};

std::expected<Prompt, Error> system_prompt(const Arguments& arguments, const Runtime& runtime, bool trusted,
                                           const std::vector<coding::BuiltinTool>& tools) {
  const fs::path& cwd = runtime.cwd;
  Prompt prompt;
  coding::SystemPromptParts parts;
  parts.cwd = cwd;
  for (const coding::BuiltinTool& tool : tools) {
    parts.tools.push_back({tool.tool.declaration.name, tool.snippet, tool.guidelines});
  }
  const coding::PromptFiles files = coding::find_prompt_files(coding::agent_folder(), cwd, trusted);
  prompt.warnings = files.warnings;
  if (arguments.system_prompt) {
    auto text = coding::prompt_argument(*arguments.system_prompt, cwd);
    if (!text) return std::unexpected(std::move(text.error()));
    parts.custom = *std::move(text);
  } else {
    parts.custom = files.system;
  }
  if (arguments.append_system_prompt.empty()) {
    if (files.append) parts.append.push_back(*files.append);
  }
  for (const std::string& argument : arguments.append_system_prompt) {
    auto text = coding::prompt_argument(argument, cwd);
    if (!text) return std::unexpected(std::move(text.error()));
    parts.append.push_back(*std::move(text));
  }
  if (!arguments.no_context_files) {
    coding::ContextFiles context = coding::load_context_files(coding::agent_folder(), cwd);
    parts.context_files = std::move(context.files);
    prompt.warnings.insert(prompt.warnings.end(), context.warnings.begin(), context.warnings.end());
  }
  parts.skills = runtime.skills;
  prompt.text = coding::build_system_prompt(parts);
  return prompt;
}

/// Skills and prompt templates: of the user, of the project when it is trusted, and of the command line.
void load_resources(const Arguments& arguments, Runtime& runtime) {
  coding::ResourceRequest request;
  request.settings = runtime.settings.get();
  request.cwd = runtime.cwd;
  request.home = coding::home_folder();
  request.command_line = arguments.skills;
  request.discover = !arguments.no_skills;
  coding::ResourceFiles files = coding::skill_files(request);
  for (std::string& warning : files.warnings)
    runtime.warnings.push_back(std::move(warning));
  coding::Skills skills = coding::load_skills(files.files);
  for (const coding::SkillDiagnostic& diagnostic : skills.diagnostics) {
    runtime.warnings.push_back(fmt::format("{}: {}", diagnostic.file.string(), diagnostic.message));
  }
  runtime.skills = std::move(skills.skills);

  request.command_line = arguments.prompt_templates;
  request.discover = !arguments.no_prompt_templates;
  files = coding::prompt_template_files(request);
  for (std::string& warning : files.warnings)
    runtime.warnings.push_back(std::move(warning));
  coding::PromptTemplates templates = coding::load_prompt_templates(files.files);
  for (std::string& warning : templates.warnings)
    runtime.warnings.push_back(std::move(warning));
  runtime.prompt_templates = std::move(templates.templates);
}

constexpr std::string_view kPlaceholder = "unknown";

/// Zero limits, no input: what `get_state` shows as long as there is no model (MO-25).
ai::Model placeholder_model() {
  ai::Model model;
  model.id = model.name = model.api = model.provider = kPlaceholder;
  model.text_input = false;
  return model;
}

/// What commands see of the session (CA-62).
std::map<std::string, std::optional<std::string>> command_environment(const Runtime& runtime) {
  const char* path = std::getenv("PATH");
  const std::string bin = (coding::agent_folder() / "bin").string();
  std::string search = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  if ((":" + search + ":").find(":" + bin + ":") == std::string::npos) search = bin + ":" + search;
  const ai::Model& model = runtime.agent->model();
  std::map<std::string, std::optional<std::string>> out{
      {"PATH", search},
      {"AI_AGENT", "pi"},
      {"PI_CODING_AGENT", "true"},
      {"PI_SESSION_ID", runtime.session->id()},
      {"PI_SESSION_FILE", std::nullopt},
      {"PI_PROVIDER", model.provider},
      {"PI_MODEL", model.id},
      {"PI_REASONING_LEVEL", std::string(ai::to_string(runtime.agent->thinking_level()))}};
  if (const auto file = runtime.session->file()) out["PI_SESSION_FILE"] = file->string();
  return out;
}

ai::StreamOptions request_options(const Settings& settings) {
  ai::StreamOptions options;
  options.idle_timeout = settings.http_idle_timeout();
  options.header_timeout = settings.request_timeout();
  const Settings::RequestRetry retry = settings.request_retry();
  options.max_retries = retry.max_retries.value_or(0);
  options.max_retry_delay = retry.max_delay;
  options.transport = settings.transport();
  options.thinking_budgets = settings.thinking_budgets();
  if (const auto proxy = settings.http_proxy()) {  // fills what the environment leaves open (CA-156)
    for (const char* name : {"HTTP_PROXY", "HTTPS_PROXY"}) {
      if (std::getenv(name) == nullptr) options.env.emplace(name, *proxy);
    }
  }
  return options;
}

/// The provider of every model: HTTP for all wire APIs, and the one that plays scripts.
ai::StreamFunction stream_function(ai::http::Client& http) {
  const ai::StreamFunction scripted = ai::make_scripted_provider({{"tour", std::string(coding::kTourScript)}});
  const ai::StreamFunction network = ai::make_stream_function(http);
  return [scripted, network](ai::Model model, ai::Context context, ai::StreamOptions options, ai::EventSink sink,
                             std::stop_token stop) {
    const ai::StreamFunction& stream = model.api == ai::kScriptedApi ? scripted : network;
    return stream(std::move(model), std::move(context), std::move(options), std::move(sink), std::move(stop));
  };
}

std::expected<coding::StartChoice, Error> choose_model(const Arguments& arguments, Runtime& runtime, NoModel no_model) {
  coding::StartRequest request;
  request.provider = arguments.provider;
  request.model = arguments.model;
  request.scope = arguments.models;
  if (arguments.thinking) request.thinking_level = ai::thinking_level_from(*arguments.thinking);
  const coding::SessionSettings context = runtime.session->settings();
  if (context.model && runtime.session->message_count() > 0) {
    request.stored = {context.model->provider, context.model->id,
                      context.has_thinking_level ? ai::thinking_level_from(context.thinking_level) : std::nullopt};
  }
  coding::StartChoice choice = coding::choose_start_model(*runtime.registry, *runtime.settings, request);
  if (choice.error) return std::unexpected(error(*choice.error));
  if (!choice.model && no_model == NoModel::kPlaceholder) choice.model = placeholder_model();
  if (!choice.model) {
    // A broken models.json explains itself better than the lack of a model.
    const std::vector<std::string> problems = runtime.registry->problems();
    if (!problems.empty()) return std::unexpected(error(problems.front()));
    if (no_model == NoModel::kFail) {
      return std::unexpected(
          error(fmt::format("No model can be used: no provider has a key. Set ANTHROPIC_API_KEY or another provider's "
                            "variable, add a key "
                            "to auth.json, or describe a server in {}. Without a key: --provider scripted --model tour",
                            runtime.registry->models_file().string())));
    }
    choice.model = ai::scripted_model("tour");
    choice.warnings.emplace_back(
        "No model is set up, so this is the built-in tour: a script, with real tools. For a real model set a key, for "
        "example ANTHROPIC_API_KEY, or describe a server in models.json.");
  }
  return choice;
}

}  // namespace

std::unique_ptr<coding::ModelRegistry> make_registry() {
  coding::RegistryOptions options;
  options.agent_folder = coding::agent_folder();
  for (const std::string_view api : ai::known_apis())
    options.apis.emplace(api);
  return std::make_unique<coding::ModelRegistry>(std::move(options));
}

std::expected<fs::path, Error> current_folder() {
  std::error_code failed;
  fs::path cwd = fs::current_path(failed);
  if (failed) {
    return std::unexpected(
        error("The folder that tau was started in no longer exists. Change to another folder first."));
  }
  return cwd;
}

bool is_placeholder(const ai::Model& model) {
  return model.provider == kPlaceholder && model.api == kPlaceholder;
}

std::expected<std::string, Error> expand_prompt(const Runtime& runtime, std::string text) {
  if (!text.starts_with('/')) return text;
  auto skill = coding::expand_skill_command(text, runtime.skills);
  if (!skill) return std::unexpected(std::move(skill.error()));
  if (*skill) return **std::move(skill);
  if (auto filled = coding::expand_prompt_template(text, runtime.prompt_templates)) return *std::move(filled);
  return text;
}

std::expected<RequestFrame, Error> request_frame(const Arguments& arguments, const fs::path& cwd) {
  const fs::path agent_folder = coding::agent_folder();
  const Settings user_settings = Settings::load(agent_folder, cwd, false);
  const coding::TrustDecision trust = coding::decide_trust({agent_folder, cwd, coding::home_folder(), arguments.approve,
                                                            std::nullopt, user_settings.default_project_trust()});
  const bool trusted = trust.trusted.value_or(false);
  Runtime runtime;
  runtime.cwd = cwd;
  runtime.settings = std::make_unique<Settings>(Settings::load(agent_folder, cwd, trusted));
  const Settings& settings = *runtime.settings;
  load_resources(arguments, runtime);
  coding::ToolEnvironment environment;
  environment.cwd = cwd;
  const std::vector<coding::BuiltinTool> tools = select_tools(arguments, settings, coding::builtin_tools(environment));
  auto prompt = system_prompt(arguments, runtime, trusted, tools);
  if (!prompt) return std::unexpected(std::move(prompt.error()));
  RequestFrame frame;
  frame.system_prompt = std::move(prompt->text);
  for (const coding::BuiltinTool& tool : tools)
    frame.tools.push_back(tool.tool.declaration);
  frame.options = request_options(settings);
  frame.block_images = settings.block_images();
  return frame;
}

std::expected<std::unique_ptr<Runtime>, Error> start(const Arguments& arguments, boost::asio::any_io_executor executor,
                                                     NoModel no_model) {
  if (const auto missing = not_yet(arguments)) return std::unexpected(error(*missing));
  auto launched_in = current_folder();
  if (!launched_in) return std::unexpected(std::move(launched_in.error()));
  // The user's settings decide where sessions are; the project's take part once the session's folder is trusted.
  const Settings user_settings = Settings::load(coding::agent_folder(), *launched_in, false);
  const SessionPlace place = session_place(arguments.session_dir, user_settings, *launched_in);
  const auto sync = user_settings.syncs_each_record() ? coding::SyncPolicy::kEachRecord : coding::SyncPolicy::kNever;
  auto session = select_session(arguments, place, *launched_in, sync);
  if (!session) return std::unexpected(std::move(session.error()));
  fs::path cwd = (*session)->cwd();
  if (cwd.empty() || arguments.continue_session) cwd = *launched_in;
  std::error_code ignored;
  if (!fs::is_directory(cwd, ignored)) {
    return std::unexpected(
        error(fmt::format("The session's folder {} no longer exists. Session file: {}. Started in: {}", cwd.string(),
                          (*session)->file().value_or("").string(), launched_in->string())));
  }
  std::vector<std::string> unnamed;
  if (arguments.name) {
    const auto named = (*session)->append_session_info(*arguments.name);
    if (!named) unnamed.push_back(named.error().message);
  }
  auto runtime = start_in(arguments, std::move(executor), *std::move(session), cwd, no_model);
  if (runtime) (*runtime)->warnings.insert((*runtime)->warnings.end(), unnamed.begin(), unnamed.end());
  return runtime;
}

std::expected<std::unique_ptr<Runtime>, Error> start_in(const Arguments& arguments,
                                                        boost::asio::any_io_executor executor,
                                                        std::shared_ptr<coding::Session> session, const fs::path& cwd,
                                                        NoModel no_model) {
  const fs::path agent_folder = coding::agent_folder();
  const Settings user_settings = Settings::load(agent_folder, cwd, false);
  auto runtime = std::make_unique<Runtime>();
  runtime->session = std::move(session);
  runtime->cwd = cwd;
  for (const std::string& warning : runtime->session->warnings()) {
    runtime->warnings.push_back(fmt::format("{}: {}", runtime->session->file()->string(), warning));
  }

  const coding::TrustDecision trust =
      coding::decide_trust({agent_folder, runtime->cwd, coding::home_folder(), arguments.approve, std::nullopt,
                            user_settings.default_project_trust()});
  if (trust.problem) runtime->warnings.push_back(*trust.problem);
  const bool trusted = trust.trusted.value_or(false);
  if (!trusted) {
    std::string note = coding::untrusted_note(trust);
    if (!note.empty()) runtime->warnings.push_back(std::move(note));
  }
  runtime->settings = std::make_unique<Settings>(Settings::load(agent_folder, runtime->cwd, trusted));
  for (std::string& warning : runtime->settings->take_warnings())
    runtime->warnings.push_back(std::move(warning));

  runtime->registry = make_registry();
  auto choice = choose_model(arguments, *runtime, no_model);
  if (!choice) return std::unexpected(std::move(choice.error()));
  for (std::string& warning : choice->warnings)
    runtime->warnings.push_back(std::move(warning));
  for (std::string& problem : runtime->registry->problems())
    runtime->warnings.push_back(std::move(problem));
  if (arguments.api_key) runtime->registry->set_runtime_key(choice->model->provider, *arguments.api_key);
  runtime->scope = std::move(choice->scope);
  load_resources(arguments, *runtime);

  Runtime* raw = runtime.get();
  coding::ToolEnvironment environment;
  environment.cwd = runtime->cwd;
  environment.shell_path = runtime->settings->shell_path();
  environment.command_prefix = runtime->settings->shell_command_prefix();
  environment.environment = [raw] { return command_environment(*raw); };
  environment.model_takes_images = [raw] { return raw->agent->model().image_input; };
  environment.mutations = std::make_shared<coding::MutationQueue>();
  environment.programs = agent_folder / "bin";
  environment.resize_images = runtime->settings->auto_resize_images();
  const std::vector<coding::BuiltinTool> tools =
      select_tools(arguments, *runtime->settings, coding::builtin_tools(environment));
  auto prompt = system_prompt(arguments, *runtime, trusted, tools);
  if (!prompt) return std::unexpected(std::move(prompt.error()));
  runtime->warnings.insert(runtime->warnings.end(), prompt->warnings.begin(), prompt->warnings.end());

  runtime->http = ai::http::make_client(executor);
  coding::AgentSessionOptions options;
  options.session = runtime->session;
  options.stream = stream_function(*runtime->http);
  options.request_options = request_options(*runtime->settings);
  options.credentials = [raw](ai::Model model) { return raw->registry->request_auth(std::move(model)); };
  options.model = *choice->model;
  options.thinking_level = choice->thinking_level;
  for (const coding::BuiltinTool& tool : tools)
    options.tools.push_back(tool.tool);
  options.system_prompt = std::move(prompt->text);
  const Settings::Retry retry = runtime->settings->retry();
  options.retry = {retry.enabled, retry.max_retries, retry.base_delay};
  const Settings::Compaction compaction = runtime->settings->compaction();
  options.compaction = {compaction.enabled, compaction.reserve_tokens, compaction.keep_recent_tokens};
  options.branch_summary_reserve_tokens = runtime->settings->branch_summary().reserve_tokens;
  options.shell = {runtime->cwd, runtime->settings->shell_path(), runtime->settings->shell_command_prefix(),
                   agent_folder / "bin"};
  options.find_model = [raw](const coding::ModelReference& reference) {
    return raw->registry->find(reference.provider, reference.id);
  };
  options.steering_mode = runtime->settings->steering_mode();
  options.follow_up_mode = runtime->settings->follow_up_mode();
  options.block_images = [raw] { return raw->settings->block_images(); };
  runtime->agent = std::make_unique<coding::AgentSession>(executor, std::move(options));
  return runtime;
}

}  // namespace tau::app
