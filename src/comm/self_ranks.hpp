#pragma once
#include "comm/ranks.hpp"

namespace kozero {

/// One rank alone, which has nobody to agree with. Needs no MPI.
class SelfRanks final : public Ranks {
public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string description() const override { return "self"; }
  void barrier() override {}
  std::unique_ptr<Ranks> split(std::vector<int> const& members) override;
  std::unique_ptr<Collectives> make_collectives(Ledger& ledger) override;

private:
  void exchange_messages(std::span<Outgoing const> sends, std::span<Incoming const> receives) override;
  void gather_parts(std::span<std::byte>) override {}
  void broadcast_bytes(std::span<std::byte>, int root) override;
};

} // namespace kozero
