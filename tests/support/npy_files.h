// The bytes of files that NumPy writes.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gradloom::test {

template <class T>
std::string raw(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string npy(const std::string& header, const std::string& data, int version = 1) {
  std::string bytes = std::string("\x93NUMPY") + static_cast<char>(version) + '\0';
  const auto length = static_cast<std::uint32_t>(header.size());
  bytes.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return bytes + header + data;
}

inline std::string header(const std::string& type, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape +
         ", }   \n";
}

// A zip archive as NumPy writes it, one entry stored or deflated.
class Zip {
 public:
  // `mode` is that of Unix, file type included; 0: not known.
  void add(const std::string& name, const std::string& content, bool deflated, std::uint32_t mode = 0) {
    const std::string packed = deflated ? deflate(content) : content;
    const auto crc = static_cast<std::uint32_t>(
        ::crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
    std::string common = raw<std::uint16_t>({20, 0, static_cast<std::uint16_t>(deflated ? 8 : 0), 0, 0}) +
                         raw<std::uint32_t>({crc, static_cast<std::uint32_t>(packed.size()),
                                             static_cast<std::uint32_t>(content.size())}) +
                         raw<std::uint16_t>({static_cast<std::uint16_t>(name.size()), 0});
    directory_ += "PK\1\2" + raw<std::uint16_t>({20}) + common + raw<std::uint16_t>({0, 0, 0}) +
                  raw<std::uint32_t>({mode << 16, static_cast<std::uint32_t>(entries_.size())}) + name;
    entries_ += "PK\3\4" + common + name + packed;
    ++count_;
  }
  std::string bytes() const {
    return entries_ + directory_ + "PK\5\6" + raw<std::uint16_t>({0, 0, count_, count_}) +
           raw<std::uint32_t>(
               {static_cast<std::uint32_t>(directory_.size()), static_cast<std::uint32_t>(entries_.size())}) +
           raw<std::uint16_t>({0});
  }

 private:
  static std::string deflate(const std::string& content) {
    z_stream z{};
    ::deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    std::string out(content.size() + 1000, '\0');
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    z.avail_in = static_cast<uInt>(content.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    ::deflate(&z, Z_FINISH);
    out.resize(z.total_out);
    ::deflateEnd(&z);
    return out;
  }

  std::string entries_, directory_;
  std::uint16_t count_ = 0;
};

}  // namespace gradloom::test
