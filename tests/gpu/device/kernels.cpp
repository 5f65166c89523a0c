// Every operator on the device: by the CPU's kernel, once its arguments are where a GPU wants them.
#include "stand_in.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <mutex>
#include <set>
#include <unordered_set>

namespace stand_in {
namespace {

using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

std::mutex one_at_a_time;
std::map<std::string, int64_t> launches;

// Operators that element by element read a number of the host's (0 dimensions) among the device's tensors. All others
// want every tensor on the device.
const std::unordered_set<std::string> WITH_NUMBERS = {
    "add", "sub", "rsub", "mul", "div", "true_divide", "floor_divide", "remainder", "fmod", "pow", "maximum", "minimum",
    "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge", "where", "masked_fill", "fill", "lerp", "addcmul", "addcdiv",
    "clamp", "clamp_min", "clamp_max", "atan2", "hypot", "logaddexp", "xlogy", "bitwise_and", "bitwise_or",
    "bitwise_xor", "logical_and", "logical_or", "logical_xor", "copysign", "heaviside", "index_put", "_index_put_impl",
    "_foreach_mul", "_foreach_div", "_foreach_add"};

// Operators whose result has a size, or a value for the host, that only the device knows.
const std::unordered_set<std::string> WAITING = {
    "_local_scalar_dense", "nonzero", "_unique", "_unique2", "unique_dim", "unique_consecutive", "masked_select",
    "equal", "bincount", "histc", "_linalg_eigh", "linalg_cholesky_ex", "multinomial"};

// Operators that launch nothing: they read a number, or change what a tensor is and not what it holds.
const std::unordered_set<std::string> NO_KERNEL = {"_local_scalar_dense", "is_set_to", "record_stream"};

// `aten::add_` is "add".
std::string plain(const std::string& name) {
  const auto start = name.rfind("::") == std::string::npos ? 0 : name.rfind("::") + 2;
  const auto end = name.size() - (name.back() == '_' ? 1 : 0);
  return name.substr(start, end - start);
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// An operator's call: its arguments as Python gave them, and the device that they are on.
struct Call {
  const OperatorHandle& op;
  std::vector<IValue> arguments;
  std::string name;
  c10::DeviceIndex device = current_device();
  bool on_device = false;

  Call(const OperatorHandle& op, Stack& stack) : op(op), name(plain(op.schema().name())) {
    const size_t count = op.schema().arguments().size();
    arguments.assign(stack.end() - count, stack.end());
    torch::jit::drop(stack, count);
    std::set<int> devices;
    for (const auto& value : arguments)
      each_tensor(value, [&](const at::Tensor& tensor) {
        if (on_gpu(tensor)) devices.insert(tensor.device().index());
      });
    TORCH_CHECK(devices.size() < 2, "Expected all tensors to be on the same device, but found at least two devices, cuda:",
                *devices.begin(), " and cuda:", *devices.rbegin(), "! (", name, ")");
    on_device = !devices.empty();
    if (on_device) device = static_cast<c10::DeviceIndex>(*devices.begin());
    for (const auto& value : arguments)
      if (!on_device && value.isDevice() && value.toDevice().has_index()) device = value.toDevice().index();
  }
  const c10::Argument& argument(size_t at) const { return op.schema().arguments()[at]; }
};

void check_places(const Call& call) {
  const bool indexes = call.name == "index" || call.name == "index_put" || call.name == "_index_put_impl";
  // `index` has copied indices of the host's, and found a mask's places (nonzero), before it comes here.
  const bool ready = call.name == "index";
  // A number that is put where a mask is becomes a fill.
  const bool fills = indexes && !ready && on_host(call.arguments[2].toTensor());
  for (size_t at = 0; at < call.arguments.size(); ++at) {
    const bool is_index = indexes && call.arguments[at].isOptionalTensorList();
    each_tensor(call.arguments[at], [&](const at::Tensor& tensor) {
      if (is_index) {
        const bool mask = tensor.defined() && (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte);
        if (!ready && on_host(tensor)) wait_for(call.device, "an index on the CPU");
        if (!ready && !fills && mask) wait_for(call.device, "an index that is a mask");
        return;
      }
      if (!on_host(tensor) || !call.on_device || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return;
      TORCH_CHECK(tensor.dim() == 0 && !is_written(call.argument(at)) && WITH_NUMBERS.count(call.name) > 0,
                  "Expected all tensors to be on the same device, but found at least two devices, cuda:", int(call.device),
                  " and cpu! (argument ", call.argument(at).name(), " of ", call.name, ")");
    });
  }
}

void wait_where_a_gpu_does(const Call& call) {
  const bool repeats = call.name == "repeat_interleave" && call.arguments.size() < 3;  // of a size that must be summed
  const bool fills = call.name == "masked_fill" && call.arguments[2].isTensor() && on_gpu(call.arguments[2].toTensor());
  if (WAITING.count(call.name) > 0 || repeats || fills) wait_for(call.device, call.name);
}

// An `out` that has grown has other memory now.
void follow_growth(const Call& call, const std::vector<IValue>& seen) {
  for (size_t at = 0; at < seen.size(); ++at) {
    if (!is_written(call.argument(at)) || !call.arguments[at].isTensor() || !on_gpu(call.arguments[at].toTensor())) continue;
    const auto& mine = call.arguments[at].toTensor();
    const auto& grown = seen[at].toTensor();
    if (mine.sizes() == grown.sizes() && mine.storage().data() == grown.storage().data()) continue;
    auto& memory = const_cast<c10::Storage&>(mine.storage());
    const auto bytes = grown.storage().nbytes();
    memory.set_data_ptr_noswap(adopt(grown.storage(), call.device));
    memory.set_nbytes(bytes);
    mine.unsafeGetTensorImpl()->set_sizes_and_strides(grown.sizes(), grown.strides(), grown.storage_offset());
    keep_in_pool(mine);
  }
}

// What a kernel returned, on the device: the argument itself, a view of an argument, or a tensor of its own.
at::Tensor returned(const Call& call, const at::Tensor& made) {
  if (!made.defined()) return made;
  at::Tensor viewed;
  for (const auto& value : call.arguments)
    each_tensor(value, [&](const at::Tensor& tensor) {
      if (on_gpu(tensor) && tensor.storage().nbytes() > 0 && tensor.storage().data() == made.storage().data()) viewed = tensor;
    });
  if (viewed.defined()) return in_memory(viewed.storage(), made);
  const auto owned = for_gpu(made, call.device);
  keep_in_pool(owned);
  return owned;
}

size_t argument_returned(const Call& call, const c10::Argument& result) {
  for (size_t at = 0; at < call.arguments.size(); ++at)
    if (is_written(call.argument(at)) && *call.argument(at).alias_info() == *result.alias_info()) return at;
  TORCH_CHECK(false, call.name, " returns what it was not given");
}

void push_results(const Call& call, const Stack& made, Stack* stack) {
  std::vector<at::Tensor> results;
  for (size_t at = 0; at < made.size(); ++at) {
    const auto& result = call.op.schema().returns()[at];
    if (is_written(result)) {
      stack->push_back(call.arguments[argument_returned(call, result)]);
      each_tensor(made[at], [&](const at::Tensor&) { results.emplace_back(); });
    } else if (made[at].isTensor()) {
      results.push_back(returned(call, made[at].toTensor()));
      stack->push_back(results.back());
    } else if (made[at].isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : made[at].toTensorVector()) list.push_back(results.emplace_back(returned(call, tensor)));
      stack->push_back(list);
    } else {
      stack->push_back(made[at]);
    }
  }
  if (NO_KERNEL.count(call.name) == 0) record_step(call.op, call.arguments, std::move(results));
}

void run(const OperatorHandle& op, Stack* stack) {
  const Call call(op, *stack);
  check_places(call);
  wait_where_a_gpu_does(call);
  if (NO_KERNEL.count(call.name) == 0) count(op.schema().name());
  std::vector<IValue> seen;
  for (size_t at = 0; at < call.arguments.size(); ++at) {
    if (is_written(call.argument(at))) each_tensor(call.arguments[at], keep_before_write);
    seen.push_back(for_cpu(call.arguments[at]));
  }
  Stack made(seen.begin(), seen.end());
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &made);
  follow_growth(call, seen);
  push_results(call, made, stack);
}

// Copies, allocation and views, which are no matter of a kernel of the CPU.

at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const auto device = on_gpu(to) ? to.device().index() : from.device().index();
  const auto& host = on_host(to) ? to : from;
  const bool crosses = on_host(host) && !host.unsafeGetTensorImpl()->is_wrapped_number() && host.numel() > 0;
  const bool later = crosses && non_blocking && is_pinned(host);
  // The runtime stages pageable memory at once on the way to the device; on the way back it waits, whatever it is asked.
  if (crosses && !later && (!non_blocking || on_host(to))) wait_for(device, on_host(to) ? "a copy to the CPU" : "a copy from the CPU");
  TORCH_CHECK(!crosses || later || !capturing(), "CUDA error: operation not permitted when stream is capturing (a copy of pageable memory)");
  count(!crosses ? "aten::copy_" : on_host(to) ? "copy to the CPU" : "copy from the CPU");
  keep_before_write(to);
  at::AutoDispatchBelowADInplaceOrView no_gradient;
  const auto target = for_cpu(to), source = for_cpu(from);
  if (!capturing() || !on_host(to)) {
    if (later && on_host(to)) {
      copy_later(to, source.to(to.scalar_type()).expand_as(to), device, true);
    } else {
      target.copy_(source);
      if (later && !capturing()) copy_later(from, from, device, false);
    }
  }
  record_copy(to, from);
  return to;
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  at::Tensor target = to;
  return copy(target, from, non_blocking);
}

at::Tensor kept(const at::Tensor& made) {
  keep_in_pool(made);
  return made;
}

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<c10::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device.value_or(c10::Device(c10::DeviceType::CUDA)));
  const c10::DispatchKeySet keys(c10::DispatchKey::CUDA);
  return kept(at::detail::empty_generic(size, device_memory(), keys, c10::dtype_or_default(type), format));
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<c10::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(device.value_or(c10::Device(c10::DeviceType::CUDA)));
  const c10::DispatchKeySet keys(c10::DispatchKey::CUDA);
  return kept(at::detail::empty_strided_generic(size, stride, device_memory(), keys, c10::dtype_or_default(type)));
}

at::Tensor& set_storage(at::Tensor& tensor, at::Storage memory, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  auto* inside = tensor.unsafeGetTensorImpl();
  inside->set_storage_keep_dtype(std::move(memory));
  if (stride.size() == size.size()) {
    inside->set_sizes_and_strides(size, stride, offset);
  } else {
    inside->set_sizes_contiguous(size);
    inside->set_storage_offset(offset);
  }
  return tensor;
}

at::Tensor& set_whole_storage(at::Tensor& tensor, at::Storage memory) {
  const auto length = static_cast<int64_t>(memory.nbytes() / tensor.dtype().itemsize());
  return set_storage(tensor, std::move(memory), 0, {length}, {1});
}

at::Tensor& set_tensor(at::Tensor& tensor, const at::Tensor& other) {
  return set_storage(tensor, other.storage(), other.storage_offset(), other.sizes(), other.strides());
}

at::Tensor& set_nothing(at::Tensor& tensor) {
  return set_tensor(tensor, empty({0}, tensor.scalar_type(), {}, tensor.device(), {}, {}));
}

TORCH_LIBRARY_IMPL(_, CUDA, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&run>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("copy_", &copy);
  library.impl("_copy_from", &copy_from);
  library.impl("as_strided", [](const at::Tensor& of, c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<int64_t> offset) {
    return at::native::as_strided_tensorimpl(of, size, stride, offset);
  });
  library.impl("view", [](const at::Tensor& of, c10::IntArrayRef size) { return at::native::view(of, size); });
  library.impl("_reshape_alias", [](const at::Tensor& of, c10::IntArrayRef size, c10::IntArrayRef stride) {
    return at::native::_reshape_alias(of, size, stride);
  });
  library.impl("unfold", [](const at::Tensor& of, int64_t dimension, int64_t size, int64_t step) {
    return at::native::unfold(of, dimension, size, step);
  });
  library.impl("resize_", [](const at::Tensor& of, c10::IntArrayRef size, std::optional<at::MemoryFormat> format) -> const at::Tensor& {
    return at::native::resize_(of, size, format);
  });
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("set_.source_Storage", &set_whole_storage);
  library.impl("set_.source_Tensor", &set_tensor);
  library.impl("set_", &set_nothing);
  library.impl("is_pinned", [](const at::Tensor&, std::optional<c10::Device>) { return false; });
  // A GPU changes a list of tensors in one launch; torch would else take it apart before it gets here.
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames())
    if (name.name.rfind("aten::_foreach_", 0) == 0) {
      const auto full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
      library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&run>());
    }
}

}  // namespace

void count(const std::string& name) {
  if (capturing()) return;
  std::lock_guard<std::mutex> hold(one_at_a_time);
  ++launches[name];
}

c10::OperatorHandle operator_of(const char* name) { return c10::Dispatcher::singleton().findSchemaOrThrow(name, ""); }

}  // namespace stand_in

extern "C" {
// Lines "operator count" of what was launched since the last call, until the next one.
const char* stand_in_take_launches() {
  static std::string text;
  std::lock_guard<std::mutex> hold(stand_in::one_at_a_time);
  text.clear();
  for (const auto& [name, times] : stand_in::launches) text += name + "\t" + std::to_string(times) + "\n";
  stand_in::launches.clear();
  return text.c_str();
}
}
