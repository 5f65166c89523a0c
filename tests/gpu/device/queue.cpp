// What the host waits for, and copies between a device and pinned memory, which are under way until then.
#include "stand_in.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>

#include <deque>
#include <mutex>

namespace stand_in {
namespace {

struct Work {
  int64_t number;
  // A copy: of `value` to `host` when it ends, or from there when it began.
  at::Tensor host, value;
  bool to_host = false;
  // Or another stream's work up to a number, which comes first.
  int64_t other = -1, until = 0;
};

std::recursive_mutex one_at_a_time;
std::map<int64_t, std::deque<Work>> under_way;  // by stream
std::map<int64_t, int64_t> done;                // by stream: the number up to which all is over
std::map<int, int64_t> current_stream;          // by device; its default stream has the device's number
int64_t last_number = 0;
std::string violation;
void (*tell)(const char*) = nullptr;

int64_t stream_of(int device) {
  const auto found = current_stream.find(device);
  return found == current_stream.end() ? device : found->second;
}

void finish(int64_t stream, int64_t until) {
  auto& works = under_way[stream];
  done[stream] = std::max(done[stream], until);
  while (!works.empty() && works.front().number <= until) {
    Work work = std::move(works.front());
    works.pop_front();
    if (work.other >= 0) {
      finish(work.other, work.until);
    } else if (work.to_host) {
      work.host.copy_(work.value);
    } else if (!at::equal(work.host, work.value)) {
      violation = "pinned memory was written before its copy to the device was over";
    }
  }
}

void complain() {
  if (!violation.empty()) {
    const std::string found = std::exchange(violation, "");
    TORCH_CHECK(false, found);
  }
}

at::Tensor nonsense(const at::Tensor& value) {
  if (value.is_floating_point()) return at::full_like(value, std::numeric_limits<double>::quiet_NaN());
  return value.scalar_type() == at::kBool ? value.logical_not() : value.bitwise_not();
}

}  // namespace

void wait_for(c10::DeviceIndex device, const std::string& why) {
  TORCH_CHECK(!capturing(), "CUDA error: operation not permitted when stream is capturing (", why, ")");
  if (tell != nullptr) tell(why.c_str());
  std::lock_guard<std::recursive_mutex> hold(one_at_a_time);
  if (why == "synchronize") {
    for (auto& [stream, works] : under_way) finish(stream, last_number);
  } else {
    finish(stream_of(device), last_number);
  }
  complain();
}

void copy_later(const at::Tensor& host, const at::Tensor& value, c10::DeviceIndex device, bool to_host) {
  std::lock_guard<std::recursive_mutex> hold(one_at_a_time);
  const at::Tensor snapshot = value.clone();
  if (to_host) host.copy_(nonsense(snapshot));
  under_way[stream_of(device)].push_back(Work{++last_number, host, snapshot, to_host});
}

}  // namespace stand_in

extern "C" {
using namespace stand_in;

void stand_in_on_wait(void (*callback)(const char*)) { tell = callback; }
int64_t stand_in_stream(int device) {
  std::lock_guard<std::recursive_mutex> hold(one_at_a_time);
  return stream_of(device);
}
void stand_in_set_stream(int device, int64_t stream) {
  std::lock_guard<std::recursive_mutex> hold(one_at_a_time);
  current_stream[device] = stream;
}
// The number of what a stream has been given last: an event that is recorded now.
int64_t stand_in_record(int64_t stream) {
  std::lock_guard<std::recursive_mutex> hold(one_at_a_time);
  under_way[stream];
  return ++last_number;
}
int stand_in_is_done(int64_t stream, int64_t number) {
  std::lock_guard<std::recursive_mutex> hold(one_at_a_time);
  return done[stream] >= number;
}
// The host waits until a stream's work up to a number is over.
const char* stand_in_finish(int64_t stream, int64_t number) {
  return caught([&] {
    TORCH_CHECK(!capturing(), "CUDA error: operation not permitted when stream is capturing");
    std::lock_guard<std::recursive_mutex> hold(one_at_a_time);
    finish(stream, number);
    complain();
  });
}
// A stream goes on only after another's work up to a number.
void stand_in_go_after(int64_t stream, int64_t other, int64_t number) {
  std::lock_guard<std::recursive_mutex> hold(one_at_a_time);
  if (stream != other) under_way[stream].push_back(Work{++last_number, {}, {}, false, other, number});
}
const char* stand_in_synchronize(int device) {
  return caught([&] { wait_for(static_cast<c10::DeviceIndex>(device), "synchronize"); });
}
}
