// Memory that belongs to a device, pinned memory, and what torch asks a GPU's driver.
#include "stand_in.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

namespace stand_in {
namespace {

constexpr int MOST = 8;
constexpr int NOTHING = 0xFF;  // NaN in every floating type, -1 in every integer: never right by chance

struct Use {
  std::atomic<size_t> used{0}, peak{0}, limit{0};
};
std::array<Use, MOST> uses;
std::atomic<int64_t> allocations_left{-1};
std::atomic<c10::DeviceIndex> devices{1};
thread_local c10::DeviceIndex current = 0;

struct Block {
  c10::Storage memory;
  c10::DeviceIndex device;
};

void give_back(void* given) {
  auto* block = static_cast<Block*>(given);
  uses[block->device].used -= block->memory.nbytes();
  if (block->memory.use_count() == 1 && block->memory.nbytes() > 0)
    std::memset(block->memory.mutable_data(), NOTHING, block->memory.nbytes());
  delete block;
}

}  // namespace

c10::DataPtr adopt(const c10::Storage& memory, c10::DeviceIndex device) {
  auto& use = uses[device];
  const size_t bytes = memory.nbytes();
  const bool short_of = bytes > 0 && allocations_left >= 0 && allocations_left-- == 0;
  if (short_of || (use.limit > 0 && use.used + bytes > use.limit))
    C10_THROW_ERROR(OutOfMemoryError, "CUDA out of memory. Tried to allocate " + std::to_string(bytes) + " bytes. GPU " +
                                          std::to_string(device) + " has a total capacity of " +
                                          std::to_string(use.limit) + " bytes.");
  use.used += bytes;
  for (size_t seen = use.peak; use.used > seen && !use.peak.compare_exchange_weak(seen, use.used);) {}
  return {memory.mutable_data(), new Block{memory, device}, &give_back, c10::Device(c10::DeviceType::CUDA, device)};
}

namespace {

struct DeviceMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    auto* host = c10::GetCPUAllocator();
    c10::Storage memory(c10::Storage::use_byte_size_t(), bytes, host->allocate(bytes), host, false);
    if (bytes > 0) std::memset(memory.mutable_data(), NOTHING, bytes);
    return adopt(memory, current);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};
DeviceMemory memory_of_device;
REGISTER_ALLOCATOR(c10::DeviceType::CUDA, &memory_of_device);

struct PinnedMemory final : c10::Allocator {
  std::mutex one_at_a_time;
  std::map<uintptr_t, size_t> pinned;  // where a block begins, and its bytes

  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  bool holds(const void* where) {
    std::lock_guard<std::mutex> hold(one_at_a_time);
    auto after = pinned.upper_bound(reinterpret_cast<uintptr_t>(where));
    if (after == pinned.begin()) return false;
    const auto& [begins, bytes] = *--after;
    return reinterpret_cast<uintptr_t>(where) < begins + bytes;
  }
};
PinnedMemory pinned_memory;

void unpin(void* given) {
  auto* memory = static_cast<c10::DataPtr*>(given);
  {
    std::lock_guard<std::mutex> hold(pinned_memory.one_at_a_time);
    pinned_memory.pinned.erase(reinterpret_cast<uintptr_t>(memory->get()));
  }
  delete memory;
}

c10::DataPtr PinnedMemory::allocate(size_t bytes) {
  auto* memory = new c10::DataPtr(c10::GetCPUAllocator()->allocate(bytes));
  if (bytes > 0) {
    std::memset(memory->get(), NOTHING, bytes);
    std::lock_guard<std::mutex> hold(one_at_a_time);
    pinned[reinterpret_cast<uintptr_t>(memory->get())] = bytes;
  }
  return {memory->get(), memory, &unpin, c10::Device(c10::DeviceType::CPU)};
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = c10::DeviceType::CUDA;
  Guard() = default;
  explicit Guard(c10::DeviceType) {}
  c10::DeviceType type() const override { return static_type; }
  c10::Device getDevice() const override { return {static_type, current}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const auto before = getDevice();
    uncheckedSetDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current = device.index();
  }
  // Kernels run in the order in which they are given, whatever their stream, so autograd may take all for one.
  c10::Stream getStream(c10::Device device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return devices; }
  void synchronizeDevice(c10::DeviceIndex device) const override { wait_for(device, "synchronize"); }
  bool isStreamCapturing(const c10::Stream&) const override { return capturing(); }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard);

}  // namespace

// Torch asks a registry by this name, once.
struct Hooks final : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return devices; }
  c10::DeviceIndex deviceCount() const override { return devices; }
  c10::DeviceIndex current_device() const override { return current; }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(c10::DeviceIndex device) const override { current = device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override { return std::exchange(current, device); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? current : std::exchange(current, device);
  }
  void deviceSynchronize(c10::DeviceIndex device) const override { wait_for(device, "synchronize"); }
  c10::Device getDeviceFromPtr(void*) const override { return {c10::DeviceType::CUDA, current}; }
  c10::Allocator* getCUDADeviceAllocator() const override { return &memory_of_device; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory; }
  bool isPinnedPtr(const void* where) const override { return pinned_memory.holds(where); }
  // A seed must give the same numbers on both, so that the two can be compared.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return at::detail::getDefaultCPUGenerator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }
};

c10::DeviceIndex current_device() { return current; }
c10::Allocator* device_memory() { return &memory_of_device; }
bool is_pinned(const at::Tensor& tensor) { return on_host(tensor) && pinned_memory.holds(tensor.storage().data()); }

at::Tensor in_memory(c10::Storage memory, const at::Tensor& like) {
  const auto key = memory.device_type() == c10::DeviceType::CUDA ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
  auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(memory), c10::DispatchKeySet(key), like.dtype());
  auto* inside = made.unsafeGetTensorImpl();
  inside->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.dim() == 0) inside->set_wrapped_number(like.unsafeGetTensorImpl()->is_wrapped_number());
  return made;
}

at::Tensor for_cpu(const at::Tensor& tensor) {
  if (!on_gpu(tensor)) return tensor;
  const auto& memory = tensor.storage();
  c10::DataPtr address(memory.mutable_data(), c10::Device(c10::DeviceType::CPU));
  // An output may grow; a view of it is the CPU's as well, until the device adopts its new memory.
  c10::Storage seen(c10::Storage::use_byte_size_t(), memory.nbytes(), std::move(address), c10::GetCPUAllocator(), true);
  return in_memory(std::move(seen), tensor);
}

c10::IValue for_cpu(const c10::IValue& value) {
  if (value.isTensor()) return for_cpu(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> seen;
    for (const at::Tensor& tensor : value.toTensorVector()) seen.push_back(for_cpu(tensor));
    return seen;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> seen;
    for (const auto& tensor : value.toOptionalTensorVector())
      seen.push_back(tensor.has_value() ? std::optional<at::Tensor>(for_cpu(*tensor)) : std::nullopt);
    return seen;
  }
  return value.isDevice() ? c10::IValue(c10::Device(c10::DeviceType::CPU)) : value;
}

at::Tensor for_gpu(const at::Tensor& made, c10::DeviceIndex device) {
  if (!on_host(made)) return made;
  const auto& memory = made.storage();
  c10::Storage adopted(c10::Storage::use_byte_size_t(), memory.nbytes(), adopt(memory, device), &memory_of_device, true);
  return in_memory(std::move(adopted), made);
}

}  // namespace stand_in

namespace at {
using StandInHooks = stand_in::Hooks;
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", StandInHooks);
}  // namespace at

extern "C" {
void stand_in_set_devices(int count) { stand_in::devices = static_cast<c10::DeviceIndex>(count); }
int stand_in_device() { return stand_in::current; }
void stand_in_set_device(int device) { stand_in::current = static_cast<c10::DeviceIndex>(device); }
size_t stand_in_used(int device) { return stand_in::uses[device].used; }
size_t stand_in_peak(int device) { return stand_in::uses[device].peak; }
void stand_in_reset_peak(int device) { stand_in::uses[device].peak = stand_in::uses[device].used.load(); }
void stand_in_set_limit(int device, size_t bytes) { stand_in::uses[device].limit = bytes; }
// The allocation after so many more fails, once; a negative number lets all succeed.
void stand_in_fail_allocation(int64_t after) { stand_in::allocations_left = after; }
// Whether that one is still to come.
int stand_in_will_fail() { return stand_in::allocations_left >= 0; }
}
