// Images: recognised, scaled, turned, converted, refused.
#include <chrono>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "coding/tools/image_codec.h"
#include "coding/tools/image_file.h"
#include "coding/tools/tool_support.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

/// Red on the left, blue on the right; the top row is green.
Bitmap picture(int width, int height) {
  Bitmap bitmap{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool top = y == 0;
      const bool left = x < width / 2;
      for (const int c : {!top && left ? 255 : 0, top ? 255 : 0, !top && !left ? 255 : 0, 255})
        bitmap.rgba.push_back(static_cast<std::uint8_t>(c));
    }
  }
  return bitmap;
}

/// Noise, which no format packs.
Bitmap noise(int width, int height) {
  Bitmap bitmap{width, height, {}};
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < std::size_t{4} * static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
       ++i) {
    state = state * 1664525U + 1013904223U;
    bitmap.rgba.push_back(i % 4 == 3 ? 255 : static_cast<std::uint8_t>(state >> 24));
  }
  return bitmap;
}

std::vector<int> pixel(const Bitmap& bitmap, int x, int y) {
  const std::size_t at =
      (static_cast<std::size_t>(y) * static_cast<std::size_t>(bitmap.width) + static_cast<std::size_t>(x)) * 4;
  return {bitmap.rgba[at], bitmap.rgba[at + 1], bitmap.rgba[at + 2]};
}

bool reddish(const std::vector<int>& p) {
  return p[0] > 150 && p[1] < 110 && p[2] < 110;
}
bool bluish(const std::vector<int>& p) {
  return p[2] > 150 && p[0] < 110 && p[1] < 110;
}

TEST(Image, AnImageThatFitsStaysByteForByte) {  // CA-36
  const std::string png = encode_png(picture(40, 30));
  const auto image = prepare_image(png, true);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->bytes, png);
  EXPECT_EQ(image->mime_type, "image/png");
  EXPECT_TRUE(image->notes.empty());
}

TEST(Image, ASideThatIsTooLongIsScaled) {  // CA-36, CA-37, FF-11
  struct Case {
    int width, height, shown_width, shown_height;
    const char* factor;
  };
  for (const Case& c :
       {Case{3000, 10, 2000, 7, "1.50"}, Case{10, 3000, 7, 2000, "1.43"}, Case{9000, 40, 2000, 9, "4.50"}}) {
    const auto image = prepare_image(encode_png(picture(c.width, c.height)), true);
    ASSERT_TRUE(image);
    const auto info = image_info(image->bytes);
    EXPECT_EQ(info->width, c.shown_width);
    EXPECT_EQ(info->height, c.shown_height);
    ASSERT_EQ(image->notes.size(), 1U);
    for (const std::string& part : {std::to_string(c.width) + "x" + std::to_string(c.height), std::string(c.factor)})
      EXPECT_NE(image->notes[0].find(part), std::string::npos) << image->notes[0];
  }
}

TEST(Image, WithoutResizingItIsSentAsItIs) {
  const std::string png = encode_png(picture(2500, 4));
  EXPECT_EQ(prepare_image(png, false)->bytes, png);
}

TEST(Image, TooManyBytesBecomeJpeg) {  // CA-36
  const std::string png = encode_png(noise(1200, 1200));
  ASSERT_GT(base64_encode(png).size(), kImageMaxBase64);
  const auto image = prepare_image(png, true);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->mime_type, "image/jpeg");
  EXPECT_LT(base64_encode(image->bytes).size(), kImageMaxBase64);
  EXPECT_EQ(image_info(image->bytes)->width, 1200);
}

TEST(Image, ScalingKeepsTheColours) {
  const Bitmap small = scale(picture(400, 400), 40, 40);
  EXPECT_TRUE(reddish(pixel(small, 5, 20)));
  EXPECT_TRUE(bluish(pixel(small, 35, 20)));
  const Bitmap white = scale(Bitmap{3, 3, std::vector<std::uint8_t>(36, 255)}, 7, 2);
  EXPECT_TRUE(std::all_of(white.rgba.begin(), white.rgba.end(), [](std::uint8_t c) { return c >= 254; }));
  // The colour of what cannot be seen does not bleed.
  Bitmap half{2, 1, {255, 0, 0, 255, 0, 255, 0, 0}};
  const Bitmap one = scale(half, 1, 1);
  EXPECT_GT(one.rgba[0], 250);
  EXPECT_LT(one.rgba[1], 5);
}

std::string with_orientation(const std::string& jpeg, int orientation) {
  std::string exif("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 24);
  exif += static_cast<char>(orientation);
  exif += std::string(7, '\0');
  std::string segment("\xff\xe1", 2);
  segment += static_cast<char>((exif.size() + 2) >> 8);
  segment += static_cast<char>(exif.size() + 2);
  return jpeg.substr(0, 2) + segment + exif + jpeg.substr(2);
}

TEST(Image, APhotographIsTurnedUpright) {                     // CA-36
  const std::string jpeg = encode_jpeg(picture(64, 32), 90);  // red left, blue right
  const auto upright = [&](int orientation) {
    return *decode_image(with_orientation(jpeg, orientation), "image/jpeg");
  };
  EXPECT_TRUE(reddish(pixel(upright(1), 8, 16)));
  EXPECT_TRUE(bluish(pixel(upright(2), 8, 16)));
  EXPECT_TRUE(bluish(pixel(upright(3), 8, 16)));
  EXPECT_TRUE(reddish(pixel(upright(4), 8, 16)));
  for (const int orientation : {5, 6, 7, 8}) {
    const Bitmap turned = upright(orientation);
    EXPECT_EQ(turned.width, 32);
    EXPECT_EQ(turned.height, 64);
    const bool red_on_top = orientation == 5 || orientation == 6;
    EXPECT_EQ(reddish(pixel(turned, 16, 8)), red_on_top) << orientation;
    EXPECT_EQ(bluish(pixel(turned, 16, 8)), !red_on_top) << orientation;
  }
  // The green row, which is the top: to the right after a quarter turn clockwise.
  EXPECT_GT(pixel(upright(6), 31, 40)[1], pixel(upright(6), 2, 40)[1] + 60);
  EXPECT_GT(pixel(upright(8), 0, 40)[1], pixel(upright(8), 29, 40)[1] + 60);
}

std::string bmp() {
  std::string b("BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0", 30);
  b += std::string(24, '\0');
  return b + std::string("\0\0\xff\0", 4);
}

TEST(Image, ABmpBecomesPng) {  // CA-35
  const auto image = prepare_image(bmp(), true);
  ASSERT_TRUE(image) << image.error();
  EXPECT_EQ(image->mime_type, "image/png");
  EXPECT_EQ(image->notes, std::vector<std::string>{"[Image converted from image/bmp to image/png.]"});
  EXPECT_TRUE(reddish(pixel(*decode_image(image->bytes, "image/png"), 0, 0)));
}

TEST(Image, BmpsOfAllDepthsAreRead) {
  const auto make = [](int bits, const std::string& palette, const std::string& pixels) {
    std::string b("BM", 2);
    const auto number = [&](std::uint32_t n, int size) {
      for (int i = 0; i < size; ++i)
        b += static_cast<char>(n >> (8 * i));
    };
    number(0, 4);
    number(0, 4);
    number(static_cast<std::uint32_t>(54 + palette.size()), 4);
    for (const std::uint32_t n : {40U, 2U, 1U})
      number(n, 4);
    number(1, 2);
    number(static_cast<std::uint32_t>(bits), 2);
    b += std::string(24, '\0');
    return b + palette + pixels;
  };
  const std::string palette("\0\0\xff\0\xff\0\0\0", 8);  // red, blue
  for (const std::string& file :
       {make(1, palette, std::string("\x40\0\0\0", 4)), make(4, palette, std::string("\x01\0\0\0", 4)),
        make(8, palette, std::string("\0\x01\0\0", 4)), make(16, "", std::string("\0\x7c\x1f\0", 4)),
        make(24, "", std::string("\0\0\xff\xff\0\0\0\0", 8)), make(32, "", std::string("\0\0\xff\0\xff\0\0\0", 8))}) {
    const auto bitmap = decode_bmp(file);
    ASSERT_TRUE(bitmap);
    EXPECT_EQ(pixel(*bitmap, 0, 0), (std::vector<int>{255, 0, 0}));
    EXPECT_EQ(pixel(*bitmap, 1, 0), (std::vector<int>{0, 0, 255}));
    EXPECT_EQ(bitmap->rgba[3], 255);
    EXPECT_FALSE(decode_bmp(file.substr(0, 56)));
  }
}

TEST(Image, AGifIsReadWithItsGrowingCodes) {
  // 2 x 2: red, white / white, red; the usual example of the format.
  std::string gif("GIF89a\x02\0\x02\0\x80\0\0\xff\xff\xff\xff\0\0,\0\0\0\0\x02\0\x02\0\0\x02", 30);
  // Codes of three bits: clear 4; 1 0 0 1; then four bits are not reached; end 5.
  const std::uint32_t codes[] = {4, 1, 0, 0, 1};
  std::uint32_t bits = 0;
  int held = 0;
  for (const std::uint32_t code : codes) {
    bits |= code << held;
    held += 3;
  }
  gif += '\x03';
  for (int i = 0; i < 3; ++i)
    gif += static_cast<char>(bits >> (8 * i));
  gif += std::string("\0;", 2);
  const auto bitmap = decode_gif(gif);
  ASSERT_TRUE(bitmap);
  EXPECT_EQ(pixel(*bitmap, 0, 0), (std::vector<int>{255, 0, 0}));
  EXPECT_EQ(pixel(*bitmap, 1, 0), (std::vector<int>{255, 255, 255}));
  EXPECT_EQ(pixel(*bitmap, 0, 1), (std::vector<int>{255, 255, 255}));
}

TEST(Image, AFileThatIsOnlyASignatureIsNoImage) {
  for (const char* text : {"RIFF", "RIFF1234", "\x89PNG\r\n\x1a\n", "BM", "GIF89a", "\xff\xd8\xff"}) {
    const auto info = image_info(text);
    if (info) {
      EXPECT_FALSE(prepare_image(text, true)) << text;
    }
  }
}

TEST(Image, AWebpThatIsTooLargeIsScaled) {
  // 2100 x 1 pixels of one colour, lossless.
  const auto webp = base64_decode("UklGRiIAAABXRUJQVlA4TBUAAAAvMwgAAAcQ/Y/+B4CE8H+9GNH/tAAA");
  ASSERT_TRUE(webp);
  EXPECT_EQ(image_info(*webp)->width, 2100);
  const auto image = prepare_image(*webp, true);
  ASSERT_TRUE(image) << image.error();
  EXPECT_EQ(image_info(image->bytes)->width, 2000);
}

TEST(Image, DamagedAndHugeImagesAreRefusedWithTheReason) {
  const std::string png = encode_png(picture(3000, 10));
  EXPECT_EQ(prepare_image(png.substr(0, png.size() / 2), true).error(), "the file is damaged");
  std::string bomb = png;
  bomb.replace(16, 8, std::string("\0\0\xff\xff\0\0\xff\xff", 8));
  EXPECT_NE(prepare_image(bomb, true).error().find("65535x65535"), std::string::npos);
  for (std::size_t size = 0; size < 60; ++size) {
    const auto image = prepare_image(png.substr(0, size), true);
    EXPECT_FALSE(image) << size;
  }
}

TEST(Image, ReadShowsAScaledImageWithItsNote) {
  const test::TemporaryFolder folder;
  folder.write("wide", encode_png(picture(9000, 40)));
  ToolEnvironment environment = tool_environment(folder.path());
  const ToolOutcome outcome = run_tool(make_read_tool(environment).tool, json::object{{"path", "wide"}});
  ASSERT_EQ(outcome.result.content.size(), 2U);
  EXPECT_TRUE(
      outcome.text().starts_with("Read image file [image/png]\n[Image scaled down: original 9000x40, shown 2000x9."))
      << outcome.text();
  environment.model_takes_images = [] { return false; };
  EXPECT_NE(
      run_tool(make_read_tool(environment).tool, json::object{{"path", "wide"}}).text().find("does not take images"),
      std::string::npos);  // CA-24
}

}  // namespace
}  // namespace tau::coding
