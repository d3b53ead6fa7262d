// IDX: arrays as the MNIST sets have them.
#pragma once

#include <filesystem>

#include "gradloom/data/npy.h"

namespace gradloom {

// Bytes 0, 0, type, dimensions; the sizes and the values, most significant byte first. Fails with invalid_input
// (damaged, truncated, bytes left over). Nothing larger than the input is allocated.
Result<NpyArray> parse_idx(std::string_view bytes, std::string_view source);
// May be gzipped.
Result<NpyArray> read_idx(const std::filesystem::path& path, std::size_t max_bytes);

// Whether a file is called like one: images-idx3-ubyte, images.idx3-ubyte, images.idx, with .gz or without.
bool is_idx_name(const std::filesystem::path& path);
// The file with the labels of these images, by the names of MNIST: train-images-idx3-ubyte has train-labels-idx1-ubyte.
// Empty: the name does not say.
std::filesystem::path idx_labels_name(const std::filesystem::path& images);

}  // namespace gradloom
