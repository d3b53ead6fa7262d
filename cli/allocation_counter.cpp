// Replaces the global operator new and delete of the program; the library leaves them alone.
#include "cli/allocation_counter.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> total_bytes{0};

void* allocate(std::size_t size) noexcept {
  total_bytes.fetch_add(size, std::memory_order_relaxed);
  return std::malloc(std::max<std::size_t>(size, 1));
}

void* allocate(std::size_t size, std::align_val_t alignment) noexcept {
  total_bytes.fetch_add(size, std::memory_order_relaxed);
  void* p = nullptr;
  const auto least = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
  return ::posix_memalign(&p, least, std::max<std::size_t>(size, 1)) == 0 ? p : nullptr;
}

// What the standard asks of a throwing operator new: the handler may free memory, throw or end the program.
template <class... Alignment>
void* allocate_or_throw(std::size_t size, Alignment... alignment) {
  while (true) {
    if (void* p = allocate(size, alignment...)) return p;
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

namespace gradloom::cli {

std::uint64_t allocated_bytes() { return total_bytes.load(std::memory_order_relaxed); }

}  // namespace gradloom::cli

void* operator new(std::size_t size) { return allocate_or_throw(size); }
void* operator new[](std::size_t size) { return allocate_or_throw(size); }
void* operator new(std::size_t size, std::align_val_t a) { return allocate_or_throw(size, a); }
void* operator new[](std::size_t size, std::align_val_t a) { return allocate_or_throw(size, a); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept { return allocate(size, a); }
void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept { return allocate(size, a); }

void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
