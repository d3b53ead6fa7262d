// What handles stand for, and the table of those that are open.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gradloom/base/error.h"
#include "gradloom/c_api.h"
#include "gradloom/circuit/json.h"
#include "gradloom/data/graph.h"
#include "gradloom/gradloom.h"

namespace gradloom::capi {

struct Object;

// The turn of the call that uses an object, or one of several that share a device.
struct Turn {
  std::mutex use;                               // held by the call
  std::vector<std::shared_ptr<Object>> closed;  // meanwhile; guarded by the table of handles
};
// Destroys what was closed, in a turn of its own; or leaves it to the call that has the turn.
void drop_closed(const std::shared_ptr<Turn>& turn);

struct Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  std::shared_ptr<Turn> turn = std::make_shared<Turn>();
  bool threaded = false;  // has threads of its own, which a fork leaves behind
};

struct StopFlag final : Object {
  static constexpr const char* kName = "stop flag";
  std::atomic<bool> set = false;
};

// What training measured after one epoch.
struct EpochRow {
  EpochReport report;
  nlohmann::json metrics;
};

struct ModelObject final : Object {
  static constexpr const char* kName = "model";
  ModelObject(std::unique_ptr<Session> session, SessionOptions options)
      : fitted(std::move(session)), settings(std::move(options)) {
    threaded = settings.exec.threads != 1;
  }
  FittedModel fitted;
  SessionOptions settings;
  std::shared_ptr<StopFlag> stop;  // that training looked at; the session keeps a pointer to it
  std::vector<EpochRow> history;
  bool stopped = false;
  std::size_t outputs = 0;  // columns of predictions; 0: nobody has asked yet
  nlohmann::json settled;   // how model.size = "auto" was settled; null: it was not asked for
};

struct GraphsObject final : Object {
  static constexpr const char* kName = "set of graphs";
  Direction direction = Direction::undirected;
  GraphSetBuilder builder;
  std::vector<std::string> node_labels, edge_labels, node_classes, graph_classes;
  std::shared_ptr<const GraphSet> set;  // null: graphs may still be added

  const std::shared_ptr<const GraphSet>& finished() {
    if (!set) set = std::make_shared<const GraphSet>(builder.finish());
    return set;
  }
};

struct CircuitObject final : Object {
  static constexpr const char* kName = "circuit";
  explicit CircuitObject(circuit::AnyCircuit any) : rule(std::move(any)) {}
  circuit::AnyCircuit rule;
};

// A handle that was never used before.
gradloom_handle open_object(std::shared_ptr<Object> object);
// Throws invalid_input when it is not open.
void close_object(gradloom_handle handle);
// Throws invalid_input when there is none; unsupported when it was opened before this process was forked and has
// threads, which did not come along.
std::shared_ptr<Object> find_object(gradloom_handle handle, const char* argument, const char* kind);
[[noreturn]] void refuse_kind(gradloom_handle handle, const char* argument, const char* kind);

// An open object, which no other call uses meanwhile.
template <class T>
class Used {
 public:
  Used(gradloom_handle handle, const char* argument)
      : object_(std::dynamic_pointer_cast<T>(find_object(handle, argument, T::kName))) {
    if (!object_) refuse_kind(handle, argument, T::kName);
    lock_ = std::unique_lock(object_->turn->use);
  }
  Used(const Used&) = delete;
  Used& operator=(const Used&) = delete;
  ~Used() {
    const std::shared_ptr<Turn> turn = object_->turn;
    object_.reset();
    lock_.unlock();
    drop_closed(turn);
  }
  T* operator->() const { return object_.get(); }
  T& operator*() const { return *object_; }

 private:
  std::shared_ptr<T> object_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace gradloom::capi
