#include "ai/image_size.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tau::ai {
namespace {

struct Sample {
  std::string what;
  std::string base64;
  std::uint32_t width;
  std::uint32_t height;
};

// FF-11
TEST(ImageSize, IsReadFromTheHeader) {
  const std::vector<Sample> samples{
      {"PNG", "iVBORw0KGgoAAAANSUhEUgAAIygAAAAoCAYAAAA=", 9000, 40},
      {"GIF", "R0lGODlhLAEHAAAAAA==", 300, 7},
      {"WebP, extended", "UklGRgAAAABXRUJQVlA4WAoAAAAAAAAADycAKQAA", 10000, 42},
      {"WebP, lossless", "UklGRgAAAABXRUJQVlA4TAoAAAAv0cSNAAA=", 1234, 568},
      {"WebP, lossy, with a scale", "UklGRgAAAABXRUJQVlA4IAoAAAAAAACdASqAQuAB", 640, 480},
      {"JPEG, after other segments and padding", "/9j/4AAQSkZJRgAAAAAAAAAAAAD/xAAFAAAA///CABEICHAPAAM=", 3840, 2160}};
  for (const Sample& sample : samples) {
    const auto size = image_size(sample.base64);
    ASSERT_TRUE(size.has_value()) << sample.what;
    EXPECT_EQ(size->width, sample.width) << sample.what;
    EXPECT_EQ(size->height, sample.height) << sample.what;
    for (std::size_t length = 0; length + 8 < sample.base64.size(); ++length) {
      const auto cut = image_size(sample.base64.substr(0, length));
      if (cut.has_value()) {
        EXPECT_EQ(cut->width, sample.width) << sample.what << " cut to " << length;
      }
    }
  }
}

TEST(ImageSize, IsUnknownForWhatIsNoImage) {
  for (const std::string text :
       {"", "QUJD", "====", "not base64!", "/9j/", "/9gA", "R0lGODlhAAAAAA==", "UklGRgAAAABXRUJQ"})
    EXPECT_FALSE(image_size(text).has_value()) << text;
}

}  // namespace
}  // namespace tau::ai
