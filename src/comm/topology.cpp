#include "comm/topology.hpp"

#include <hwloc.h>
#include <hwloc/helper.h>

#include <algorithm>
#include <limits>

namespace kozero {

struct Topology::Handle {
  Handle() = default;
  Handle(Handle const&) = delete;
  Handle& operator=(Handle const&) = delete;
  ~Handle() {
    if (topology) hwloc_topology_destroy(topology);
  }

  /// `xml`: null for this host.
  void load(std::string const* xml, Depth depth) {
    if (hwloc_topology_init(&topology) != 0) {
      topology = nullptr;
      return;
    }
    if (depth == Depth::devices) hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    leave_out_libraries();
    bool const is_set =
        !xml || hwloc_topology_set_xmlbuffer(topology, xml->c_str(), static_cast<int>(xml->size() + 1)) == 0;
    if (is_set && hwloc_topology_load(topology) == 0) return;
    hwloc_topology_destroy(topology);
    topology = nullptr;
  }

  hwloc_topology_t topology = nullptr;

private:
  /// What hwloc asks libraries of devices' makers for is not needed: the PCI bus and the system know enough. OpenCL's
  /// part has crashed beside CUDA 12 (hwloc's issue 641). A part that this hwloc lacks is refused, which is as well.
  void leave_out_libraries() const {
#if HWLOC_API_VERSION >= 0x00020100
    for (char const* const part : {"cuda", "gl", "levelzero", "nvml", "opencl", "rsmi"}) {
      hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, part);
    }
#endif
  }
};

namespace {

/// How many steps up from the device the two meet.
int distance(hwloc_obj_t device, hwloc_obj_t card) {
  int steps = 0;
  for (hwloc_obj_t above = device; above != nullptr; above = above->parent, ++steps) {
    for (hwloc_obj_t at = card; at != nullptr; at = at->parent) {
      if (at == above) return steps;
    }
  }
  return std::numeric_limits<int>::max();
}

bool is_card(hwloc_obj_t device, hwloc_obj_osdev_type_t type) {
  bool const is_real = device->parent != nullptr && device->parent->type == HWLOC_OBJ_PCI_DEVICE;
  return is_real && device->attr->osdev.type == type && device->name != nullptr;
}

} // namespace

Topology Topology::of_this_host(Depth depth) {
  auto handle = std::make_shared<Handle>();
  handle->load(nullptr, depth);
  return Topology(std::move(handle));
}

Topology Topology::of_xml(std::string const& xml) {
  auto handle = std::make_shared<Handle>();
  handle->load(&xml, Depth::devices);
  return Topology(std::move(handle));
}

int Topology::processors() const {
  return handle_->topology ? hwloc_get_nbobjs_by_type(handle_->topology, HWLOC_OBJ_PU) : 0;
}

std::size_t Topology::core_of(std::size_t processor) const {
  hwloc_topology_t const topology = handle_->topology;
  hwloc_obj_t const unit =
      topology ? hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(processor)) : nullptr;
  hwloc_obj_t const core = unit ? hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit) : nullptr;
  return core ? core->logical_index : processor;
}

std::vector<int> Topology::nodes_of(ProcessorMask const& processors) const {
  std::vector<int> nodes;
  hwloc_topology_t const topology = handle_->topology;
  for (std::size_t p = 0; topology && p < processors.size(); ++p) {
    hwloc_obj_t const unit = processors[p] ? hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(p)) : nullptr;
    int const node = unit ? hwloc_bitmap_first(unit->nodeset) : -1;
    if (node >= 0 && std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
  }
  std::ranges::sort(nodes);
  return nodes;
}

Topology::Near Topology::near(std::string const& pci_address) const {
  Near near;
  hwloc_topology_t const topology = handle_->topology;
  hwloc_obj_t const device = topology ? hwloc_get_pcidev_by_busidstring(topology, pci_address.c_str()) : nullptr;
  if (!device) return near;
  hwloc_obj_t const beside = hwloc_get_non_io_ancestor_obj(topology, device);
  if (beside && hwloc_bitmap_weight(beside->nodeset) == 1) near.node = hwloc_bitmap_first(beside->nodeset);
  // One card has several names; the one that libraries know it by stands for all.
  for (auto const type : {HWLOC_OBJ_OSDEV_OPENFABRICS, HWLOC_OBJ_OSDEV_NETWORK}) {
    int nearest = std::numeric_limits<int>::max();
    for (hwloc_obj_t card = nullptr; (card = hwloc_get_next_osdev(topology, card)) != nullptr;) {
      if (!is_card(card, type)) continue;
      int const steps = distance(device, card);
      if (steps < nearest) near.cards.clear();
      nearest = std::min(nearest, steps);
      if (steps == nearest) near.cards.emplace_back(card->name);
    }
    if (!near.cards.empty()) break;
  }
  std::ranges::sort(near.cards);
  return near;
}

} // namespace kozero
