#include <algorithm>
#include <cmath>
#include <numbers>

#include "coding/tools/image_codec.h"

namespace tau::coding {

namespace {

constexpr double kLobes = 3;

double lanczos(double x) {
  if (std::abs(x) < 1e-9) return 1;
  if (std::abs(x) >= kLobes) return 0;
  const double angle = std::numbers::pi * x;
  return kLobes * std::sin(angle) * std::sin(angle / kLobes) / (angle * angle);
}

/// What a pixel of the result is made of: source pixels from `first` on, with weights whose sum is 1.
struct Recipe {
  int first = 0;
  std::vector<float> weights;
};

std::vector<Recipe> recipes(int from, int to) {
  const double ratio = static_cast<double>(from) / to;
  const double stretch = std::max(1.0, ratio);  // a smaller picture averages over more
  std::vector<Recipe> out(static_cast<std::size_t>(to));
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * ratio - 0.5;
    Recipe& recipe = out[static_cast<std::size_t>(i)];
    recipe.first = std::max(0, static_cast<int>(std::ceil(centre - kLobes * stretch)));
    const int last = std::min(from - 1, static_cast<int>(std::floor(centre + kLobes * stretch)));
    double sum = 0;
    for (int k = recipe.first; k <= last; ++k) {
      const double weight = lanczos((k - centre) / stretch);
      recipe.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : recipe.weights)
      weight = static_cast<float>(weight / sum);
  }
  return out;
}

std::uint8_t to_byte(float value) {
  return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0F, 255.0F)));
}

/// One direction. Pixel (i, line) of the source stands at i * step + line * line_step, in bytes; the result likewise.
void resample(const std::uint8_t* source, std::size_t step, std::size_t line_step, std::uint8_t* target,
              std::size_t target_step, std::size_t target_line_step, std::size_t lines,
              const std::vector<Recipe>& pixels) {
  for (std::size_t line = 0; line < lines; ++line) {
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      float sum[4] = {};
      const std::uint8_t* from = source + line * line_step + static_cast<std::size_t>(pixels[i].first) * step;
      for (const float weight : pixels[i].weights) {
        for (int c = 0; c < 4; ++c)
          sum[c] += weight * from[c];
        from += step;
      }
      std::uint8_t* to = target + line * target_line_step + i * target_step;
      for (int c = 0; c < 4; ++c)
        to[c] = to_byte(sum[c]);
    }
  }
}

/// Colours count as much as they are seen: otherwise the colour of transparent pixels bleeds into their neighbours.
void multiply_by_alpha(std::vector<std::uint8_t>& rgba) {
  for (std::size_t i = 0; i < rgba.size(); i += 4) {
    for (std::size_t c = 0; c < 3; ++c)
      rgba[i + c] = static_cast<std::uint8_t>((rgba[i + c] * rgba[i + 3] + 127U) / 255U);
  }
}

void divide_by_alpha(std::vector<std::uint8_t>& rgba) {
  for (std::size_t i = 0; i < rgba.size(); i += 4) {
    const unsigned alpha = rgba[i + 3];
    if (alpha == 0 || alpha == 255) continue;
    for (std::size_t c = 0; c < 3; ++c)
      rgba[i + c] = static_cast<std::uint8_t>(std::min(255U, (rgba[i + c] * 255U + alpha / 2) / alpha));
  }
}

}  // namespace

Bitmap scale(const Bitmap& bitmap, int width, int height) {
  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  bool transparent = false;
  for (std::size_t i = 3; i < bitmap.rgba.size() && !transparent; i += 4)
    transparent = bitmap.rgba[i] != 255;
  std::vector<std::uint8_t> weighted;
  if (transparent) {
    weighted = bitmap.rgba;
    multiply_by_alpha(weighted);
  }
  const std::vector<std::uint8_t>& source = transparent ? weighted : bitmap.rgba;

  const std::size_t row = size(width) * 4;
  std::vector<std::uint8_t> narrow(row * size(bitmap.height));
  resample(source.data(), 4, size(bitmap.width) * 4, narrow.data(), 4, row, size(bitmap.height),
           recipes(bitmap.width, width));
  Bitmap out{width, height, std::vector<std::uint8_t>(row * size(height))};
  resample(narrow.data(), row, 4, out.rgba.data(), row, 4, size(width), recipes(bitmap.height, height));
  if (transparent) divide_by_alpha(out.rgba);
  return out;
}

}  // namespace tau::coding
