#include "ai/catalog/providers.h"

namespace tau::ai {

namespace {

// clang-format off
constexpr ProviderInfo kProviders[] = {
    {"amazon-bedrock", "Amazon Bedrock", {}},
    {"ant-ling", "Ant Ling", {"ANT_LING_API_KEY"}},
    {"anthropic", "Anthropic", {"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"}},
    {"azure-openai-responses", "Azure OpenAI", {"AZURE_OPENAI_API_KEY"}},
    {"baseten", "Baseten", {"BASETEN_API_KEY"}},
    {"cerebras", "Cerebras", {"CEREBRAS_API_KEY"}},
    {"cloudflare-ai-gateway", "Cloudflare AI Gateway", {"CLOUDFLARE_API_KEY"}},
    {"cloudflare-workers-ai", "Cloudflare Workers AI", {"CLOUDFLARE_API_KEY"}},
    {"deepseek", "DeepSeek", {"DEEPSEEK_API_KEY"}},
    {"fireworks", "Fireworks", {"FIREWORKS_API_KEY"}},
    {"github-copilot", "GitHub Copilot", {"COPILOT_GITHUB_TOKEN"}},
    {"google", "Google", {"GEMINI_API_KEY"}},
    {"google-vertex", "Google Vertex AI", {"GOOGLE_CLOUD_API_KEY"}},
    {"groq", "Groq", {"GROQ_API_KEY"}},
    {"huggingface", "Hugging Face", {"HF_TOKEN"}},
    {"kimi-coding", "Kimi For Coding", {"KIMI_API_KEY"}},
    {"minimax", "MiniMax", {"MINIMAX_API_KEY"}},
    {"minimax-cn", "MiniMax CN", {"MINIMAX_CN_API_KEY"}},
    {"mistral", "Mistral", {"MISTRAL_API_KEY"}},
    {"moonshotai", "Moonshot AI", {"MOONSHOT_API_KEY"}},
    {"moonshotai-cn", "Moonshot AI CN", {"MOONSHOT_API_KEY"}},
    {"nvidia", "NVIDIA", {"NVIDIA_API_KEY"}},
    {"openai", "OpenAI", {"OPENAI_API_KEY"}},
    {"openai-codex", "OpenAI Codex", {}},
    {"opencode", "OpenCode Zen", {"OPENCODE_API_KEY"}},
    {"opencode-go", "OpenCode Go", {"OPENCODE_API_KEY"}},
    {"openrouter", "OpenRouter", {"OPENROUTER_API_KEY"}},
    {"qwen-token-plan", "Qwen Token Plan", {"QWEN_TOKEN_PLAN_API_KEY"}},
    {"qwen-token-plan-cn", "Qwen Token Plan CN", {"QWEN_TOKEN_PLAN_CN_API_KEY"}},
    {"qwen-token-plan-individual", "Qwen Token Plan Individual", {"QWEN_TOKEN_PLAN_API_KEY"}},
    {"radius", "Radius", {"RADIUS_API_KEY"}},
    {"together", "Together", {"TOGETHER_API_KEY"}},
    {"vercel-ai-gateway", "Vercel AI Gateway", {"AI_GATEWAY_API_KEY"}},
    {"xai", "xAI", {"XAI_API_KEY"}},
    {"xiaomi", "Xiaomi", {"XIAOMI_API_KEY"}},
    {"xiaomi-token-plan-ams", "Xiaomi Token Plan AMS", {"XIAOMI_TOKEN_PLAN_AMS_API_KEY"}},
    {"xiaomi-token-plan-cn", "Xiaomi Token Plan CN", {"XIAOMI_TOKEN_PLAN_CN_API_KEY"}},
    {"xiaomi-token-plan-sgp", "Xiaomi Token Plan SGP", {"XIAOMI_TOKEN_PLAN_SGP_API_KEY"}},
    {"zai", "Z.AI", {"ZAI_API_KEY"}},
    {"zai-coding-cn", "Z.AI Coding CN", {"ZAI_CODING_CN_API_KEY"}},
};

constexpr DefaultModel kDefaultModels[] = {
    {"amazon-bedrock", "us.anthropic.claude-opus-4-6-v1"},
    {"ant-ling", "Ring-2.6-1T"},
    {"anthropic", "claude-opus-4-8"},
    {"openai", "gpt-5.5"},
    {"azure-openai-responses", "gpt-5.4"},
    {"openai-codex", "gpt-5.5"},
    {"radius", "auto"},
    {"nvidia", "nvidia/nemotron-3-super-120b-a12b"},
    {"deepseek", "deepseek-v4-pro"},
    {"google", "gemini-3.1-pro-preview"},
    {"google-vertex", "gemini-3.1-pro-preview"},
    {"github-copilot", "gpt-5.4"},
    {"openrouter", "moonshotai/kimi-k2.6"},
    {"vercel-ai-gateway", "zai/glm-5.1"},
    {"xai", "grok-4.6"},
    {"groq", "openai/gpt-oss-120b"},
    {"cerebras", "gpt-oss-120b"},
    {"zai", "glm-5.3"},
    {"zai-coding-cn", "glm-5.3"},
    {"mistral", "devstral-medium-latest"},
    {"minimax", "MiniMax-M2.7"},
    {"minimax-cn", "MiniMax-M2.7"},
    {"moonshotai", "kimi-k2.6"},
    {"moonshotai-cn", "kimi-k2.6"},
    {"huggingface", "moonshotai/Kimi-K2.6"},
    {"fireworks", "accounts/fireworks/models/kimi-k2p6"},
    {"together", "moonshotai/Kimi-K2.6"},
    {"baseten", "zai-org/GLM-5.2"},
    {"opencode", "kimi-k2.6"},
    {"opencode-go", "kimi-k2.6"},
    {"kimi-coding", "kimi-for-coding"},
    {"cloudflare-workers-ai", "@cf/moonshotai/kimi-k2.6"},
    {"cloudflare-ai-gateway", "workers-ai/@cf/moonshotai/kimi-k2.6"},
    {"qwen-token-plan", "qwen3.7-max"},
    {"qwen-token-plan-cn", "qwen3.7-max"},
    {"qwen-token-plan-individual", "qwen3.8-max"},
    {"xiaomi", "mimo-v2.5-pro"},
    {"xiaomi-token-plan-cn", "mimo-v2.5-pro"},
    {"xiaomi-token-plan-ams", "mimo-v2.5-pro"},
    {"xiaomi-token-plan-sgp", "mimo-v2.5-pro"},
};
// clang-format on

}  // namespace

std::span<const ProviderInfo> built_in_providers() {
  return kProviders;
}

const ProviderInfo* find_provider(std::string_view id) {
  for (const ProviderInfo& provider : kProviders) {
    if (provider.id == id) return &provider;
  }
  return nullptr;
}

std::span<const DefaultModel> default_models() {
  return kDefaultModels;
}

std::string_view default_model(std::string_view provider) {
  for (const DefaultModel& row : kDefaultModels) {
    if (row.provider == provider) return row.model;
  }
  return {};
}

}  // namespace tau::ai
