// Captured graphs: the operators of a capture with the addresses of their tensors, and no tensor.
#include "stand_in.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <pthread.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <unordered_map>
#include <unordered_set>

namespace stand_in {

struct Step {
  std::optional<c10::OperatorHandle> op;  // none: a copy between the device and pinned memory
  std::vector<c10::IValue> arguments;
  std::vector<at::Tensor> results;
  c10::DeviceIndex device = 0;
};

struct Graph {
  std::vector<Step> steps;
  std::map<std::string, int64_t> kernels;
  std::vector<c10::Storage> pool;  // what was made while it was captured
  std::unordered_set<const void*> inside;
  std::unordered_map<const void*, c10::weak_intrusive_ptr<c10::StorageImpl>> outside;
  std::vector<std::pair<c10::Storage, std::vector<char>>> before;  // what the capture wrote, as it was
  std::unordered_set<const void*> saved;
};

namespace {

std::atomic<Graph*> underway{nullptr};
std::atomic<bool> of_one_thread{false};  // what other threads give the device meanwhile is no part of the graph
std::thread::id owner;

// Whether this thread works for the capture: the one that began it, or autograd's.
bool takes_part() {
  if (!of_one_thread || std::this_thread::get_id() == owner) return true;
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return std::strncmp(name, "pt_autograd", 11) == 0;
}

void keep_alive_check(const at::Tensor& tensor) {
  if (!on_gpu(tensor)) return;
  auto* memory = tensor.storage().unsafeGetStorageImpl();
  Graph& graph = *underway;
  if (graph.inside.count(memory) == 0) graph.outside.try_emplace(memory, tensor.storage().getWeakStorageImpl());
}

}  // namespace

bool capturing() { return underway != nullptr && takes_part(); }

void keep_before_write(const at::Tensor& tensor) {
  if (!capturing() || !on_gpu(tensor)) return;
  Graph& graph = *underway;
  const auto& memory = tensor.storage();
  const void* which = memory.unsafeGetStorageImpl();
  if (graph.inside.count(which) > 0 || !graph.saved.insert(which).second) return;
  const auto* bytes = static_cast<const char*>(memory.data());
  graph.before.emplace_back(memory, std::vector<char>(bytes, bytes + memory.nbytes()));
}

void keep_in_pool(const at::Tensor& tensor) {
  if (!capturing() || !on_gpu(tensor)) return;
  Graph& graph = *underway;
  if (graph.inside.insert(tensor.storage().unsafeGetStorageImpl()).second) graph.pool.push_back(tensor.storage());
}

void record_step(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments, std::vector<at::Tensor> results) {
  if (!capturing()) return;
  Step step{op, {}, {}};
  for (const auto& value : arguments) {
    each_tensor(value, keep_alive_check);
    step.arguments.push_back(for_cpu(value));
  }
  for (const auto& tensor : results) step.results.push_back(for_cpu(tensor));
  Graph& graph = *underway;
  ++graph.kernels[op.schema().name()];
  graph.steps.push_back(std::move(step));
}

void record_copy(const at::Tensor& to, const at::Tensor& from) {
  if (!capturing()) return;
  keep_alive_check(to);
  keep_alive_check(from);
  const bool with_host = on_host(to) || on_host(from);
  Step step{with_host ? std::nullopt : std::optional(operator_of("aten::copy_")), {for_cpu(to), for_cpu(from), false}, {}};
  step.device = on_gpu(from) ? from.device().index() : to.device().index();
  step.results.emplace_back();
  if (with_host) step.results.push_back(on_host(to) ? to : at::Tensor());
  Graph& graph = *underway;
  ++graph.kernels["aten::copy_"];
  graph.steps.push_back(std::move(step));
}

namespace {

void begin(Graph& graph, bool one_thread) {
  TORCH_CHECK(underway == nullptr, "CUDA error: another graph is being captured");
  owner = std::this_thread::get_id();
  of_one_thread = one_thread;
  underway = &graph;
}

// A capture runs nothing on a GPU: what it wrote is as before, and what it made holds nothing yet.
void end() {
  Graph& graph = *underway.exchange(nullptr);
  for (auto& [memory, bytes] : graph.before) std::memcpy(memory.mutable_data(), bytes.data(), bytes.size());
  graph.before.clear();
  for (auto& memory : graph.pool)
    if (memory.nbytes() > 0) std::memset(memory.mutable_data(), 0xFF, memory.nbytes());
}

void replay(Graph& graph) {
  for (const auto& [memory, weak] : graph.outside)
    TORCH_CHECK(weak.use_count() > 0, "a graph reads or writes memory that was freed after its capture");
  at::AutoDispatchBelowADInplaceOrView no_gradient;
  for (const auto& step : graph.steps) {
    if (!step.op.has_value()) {
      const auto to = step.arguments[0].toTensor(), from = step.arguments[1].toTensor();
      const bool to_host = step.results[1].defined();
      if (!to_host) to.copy_(from);
      copy_later(to_host ? to : from, from, step.device, to_host);
      continue;
    }
    torch::jit::Stack stack(step.arguments.begin(), step.arguments.end());
    step.op->redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
    size_t at = 0;
    for (const auto& value : stack)
      each_tensor(value, [&](const at::Tensor& made) {
        if (at < step.results.size() && step.results[at].defined()) step.results[at].copy_(made);
        ++at;
      });
  }
}

}  // namespace
}  // namespace stand_in

extern "C" {
using stand_in::Graph;

Graph* stand_in_graph() { return new Graph; }
void stand_in_graph_delete(Graph* graph) { delete graph; }
const char* stand_in_graph_begin(Graph* graph, int one_thread) {
  return stand_in::caught([&] { stand_in::begin(*graph, one_thread != 0); });
}
void stand_in_graph_end() { stand_in::end(); }
const char* stand_in_graph_replay(Graph* graph) {
  return stand_in::caught([&] { stand_in::replay(*graph); });
}
int stand_in_capturing() { return stand_in::capturing(); }
// Lines "operator count", until the next call.
const char* stand_in_graph_kernels(Graph* graph) {
  static std::string text;
  text.clear();
  for (const auto& [name, times] : graph->kernels) text += name + "\t" + std::to_string(times) + "\n";
  return text.c_str();
}
}
