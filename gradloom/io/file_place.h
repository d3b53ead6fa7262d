// FilePlace: which file is meant, and whether links may lead there.
#pragma once

#include <concepts>
#include <filesystem>
#include <string>
#include <utility>

namespace gradloom {

// A path, from which it is made without a word: links are followed, as everywhere. Or a file below a folder that is
// open: neither the file nor a folder on the way from there may be a link, so that whoever made the folder cannot lead
// a reader or a writer out of it.
class FilePlace {
 public:
  template <class P>
  requires(!std::same_as<P, FilePlace> && std::constructible_from<std::filesystem::path, const P&>)
      FilePlace(const P& path)
      : path_(path) {}  // NOLINT(google-explicit-constructor)

  // `descriptor` is the open folder, which outlives the place; `folder` is its path for messages; `below` is relative
  // and has no "..".
  FilePlace(int descriptor, const std::filesystem::path& folder, std::filesystem::path below)
      : path_(folder / below), below_(std::move(below)), folder_(descriptor) {}

  // The same file, but what a writer replaces is kept beside it under this name.
  FilePlace keeping(std::string name) const {
    FilePlace place = *this;
    place.kept_as_ = std::move(name);
    return place;
  }

  operator const std::filesystem::path&() const { return path_; }  // NOLINT(google-explicit-constructor)
  const std::filesystem::path& path() const { return path_; }
  std::string string() const { return path_.string(); }

  bool follows_links() const { return folder_ < 0; }
  int folder() const { return folder_; }
  const std::filesystem::path& below() const { return below_; }
  const std::string& kept_as() const { return kept_as_; }  // empty: it goes

 private:
  std::filesystem::path path_, below_;
  int folder_ = -1;
  std::string kept_as_;
};

}  // namespace gradloom
