#pragma once
#include "core/processors.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kozero {

/// What hwloc finds of a host: cores, memory, devices and network cards, and which are near each other. Where it finds
/// nothing out, each processor counts as a core, and the rest is not known.
class Topology {
public:
  /// Devices take longer to find, and are of no interest where the device is the host.
  enum class Depth { processors, devices };
  static Topology of_this_host(Depth depth);
  /// As lstopo writes it.
  static Topology of_xml(std::string const& xml);

  int processors() const;
  std::size_t core_of(std::size_t processor) const;
  /// NUMA nodes with memory near to the processors, by number.
  std::vector<int> nodes_of(ProcessorMask const& processors) const;

  struct Near {
    std::optional<int> node;        // NUMA node; none where several are as near
    std::vector<std::string> cards; // network cards that share the nearest bridge: "mlx5_0"
  };
  /// Of a device by its address on the PCI bus, "0000:1b:00.0".
  Near near(std::string const& pci_address) const;

private:
  struct Handle;
  explicit Topology(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<Handle> handle_; // never null
};

} // namespace kozero
