// A GPU that is none: what its parts know of each other.
//
// torch's build for CPUs has the dispatch key CUDA and nothing behind it. This library puts the CPU's kernels there:
// - memory.cpp: memory that belongs to a device, pinned memory, the current device, and what torch asks a GPU's driver;
// - kernels.cpp: every operator, by the CPU's kernel on the same memory, once its arguments are where a GPU wants them;
// - queue.cpp: what the host waits for, and copies that are under way until then;
// - graph.cpp: captured graphs, which keep addresses and nothing else.
// Python reaches it through the functions with C's names (`tests/gpu/library.py`); those that can fail return what
// went wrong, or null.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stand_in {

inline bool on_gpu(const at::Tensor& tensor) { return tensor.defined() && tensor.device().is_cuda(); }
inline bool on_host(const at::Tensor& tensor) { return tensor.defined() && tensor.device().is_cpu(); }

template <class Visit>
void each_tensor(const c10::IValue& value, Visit visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const auto& tensor : value.toOptionalTensorVector())
      if (tensor.has_value()) visit(*tensor);
  }
}

// What went wrong in `act`, for a function with a C name to return, or null.
template <class Act>
const char* caught(Act act) {
  static thread_local std::string message;
  try {
    act();
    return nullptr;
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
}

// memory.cpp

c10::DeviceIndex current_device();
c10::Allocator* device_memory();

// The same elements for a kernel of the CPU; it owns nothing, so the tensor must outlive it. Others stay as they are.
at::Tensor for_cpu(const at::Tensor& tensor);
c10::IValue for_cpu(const c10::IValue& value);

// What a kernel of the CPU made, as the device's. Raises OutOfMemoryError beyond the limit.
at::Tensor for_gpu(const at::Tensor& made, c10::DeviceIndex device);

// A storage of the CPU as memory of the device. Raises as `for_gpu` does.
c10::DataPtr adopt(const c10::Storage& memory, c10::DeviceIndex device);

// A tensor in a given memory that is otherwise like another.
at::Tensor in_memory(c10::Storage memory, const at::Tensor& like);

bool is_pinned(const at::Tensor& tensor);

// queue.cpp

// The host waits for what `device` has been given, and it is counted. Raises if a graph is being captured, or if
// pinned memory was written while it was copied.
void wait_for(c10::DeviceIndex device, const std::string& why);

// A copy between the device and pinned memory that is over only when somebody waits for it: until then, `host` holds
// nonsense where it is to receive the value, and must not change where the value comes from.
void copy_later(const at::Tensor& host, const at::Tensor& value, c10::DeviceIndex device, bool to_host);

// graph.cpp

bool capturing();
// What a step writes or makes while a graph is captured.
void keep_before_write(const at::Tensor& tensor);
void keep_in_pool(const at::Tensor& tensor);
// Records a step of a capture: `results` are the tensors that the operator returned, undefined where they are arguments.
void record_step(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments, std::vector<at::Tensor> results);
void record_copy(const at::Tensor& to, const at::Tensor& from);

// kernels.cpp

// Counts a launch, unless it becomes part of a graph.
void count(const std::string& name);
c10::OperatorHandle operator_of(const char* name);

}  // namespace stand_in
