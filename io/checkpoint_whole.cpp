#include "io/checkpoint_whole.hpp"

#include "core/hash.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_format.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <tuple>

namespace kozero::checkpoint {

namespace fs = std::filesystem;

namespace {

/// A non-empty share, by the number of its tensor.
struct Held {
  std::int64_t tensor, begin, end;
};

/// The tensors of all shares, without parts, in an order of their own.
std::vector<WholeTensor> tensors_of(std::span<TensorShare const> shares) {
  std::vector<WholeTensor> tensors;
  for (auto const& share : shares) tensors.push_back({share.name, share.kind, share.shape, share.type});
  std::ranges::sort(tensors, {}, [](auto const& tensor) { return std::tie(tensor.name, tensor.kind); });
  return tensors;
}

Hash128::Digest digest_of(std::span<WholeTensor const> tensors) {
  Hash128 hash;
  auto const add = [&](void const* data, std::size_t bytes) { hash.update(data, bytes); };
  for (auto const& [name, kind, shape, type, parts] : tensors) {
    add(name.c_str(), name.size() + 1);
    add(kind.c_str(), kind.size() + 1);
    add(shape.data(), shape.size() * sizeof(std::int64_t));
    add(&type, sizeof(type));
  }
  return hash.digest();
}

template <class T>
void append(std::string& bytes, T const& value) {
  bytes.append(reinterpret_cast<char const*>(&value), sizeof(value));
}

/// What one rank tells the others: its tensors' digest, then what it holds of them.
std::string message_of(std::span<TensorShare const> own, std::span<WholeTensor const> tensors) {
  std::string bytes;
  append(bytes, digest_of(tensors));
  for (auto const& share : own) {
    if (share.interval.empty()) continue;
    auto const place = std::ranges::lower_bound(tensors, std::tie(share.name, share.kind), {},
                                                [](auto const& tensor) { return std::tie(tensor.name, tensor.kind); });
    append(bytes, Held{place - tensors.begin(), share.interval.begin, share.interval.end});
  }
  return bytes;
}

void take_parts(std::vector<WholeTensor>& tensors, std::int64_t rank, std::string_view message) {
  for (std::size_t at = sizeof(Hash128::Digest); at < message.size(); at += sizeof(Held)) {
    Held held{};
    std::memcpy(&held, message.data() + at, sizeof(held));
    tensors[static_cast<std::size_t>(held.tensor)].parts.push_back({rank, {held.begin, held.end}});
  }
}

h5::Dataspace space_of(h5::Job const& job, std::vector<std::int64_t> const& shape) {
  std::vector<hsize_t> const extents(shape.begin(), shape.end());
  return h5::Dataspace(
      KOZERO_HDF5_CALL(job, H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr)));
}

void select(h5::Job const& job, h5::Dataspace const& space, Box const& box) {
  std::vector<hsize_t> const start(box.begin.begin(), box.begin.end());
  std::vector<hsize_t> const count(box.extent.begin(), box.extent.end());
  KOZERO_HDF5_CALL(job, H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr));
}

std::int64_t elements_of(std::vector<std::int64_t> const& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// Each box of the dataset is an interval of a rank's dataset.
void map_part(h5::Job const& job, h5::Properties const& creation, WholeTensor const& tensor,
              std::vector<std::int64_t> const& shape, WholeTensor::Part const& part) {
  auto const whole = space_of(job, shape);
  auto const held = h5::simple_space(job, part.interval.size());
  std::string const file = rank_file_name(part.rank);
  std::string const dataset = tensor.name + "/" + tensor.kind;
  std::int64_t at = 0;
  for (Box const& box : boxes_of(part.interval, shape)) {
    std::int64_t const count = elements_of(box.extent);
    select(job, whole, box);
    select(job, held, {{at}, {count}});
    KOZERO_HDF5_CALL(job, H5Pset_virtual(creation.id(), whole.id(), file.c_str(), dataset.c_str(), held.id()));
    at += count;
  }
}

void write_tensor(h5::Job const& job, hid_t file, Types const& types, WholeTensor const& tensor) {
  // A virtual dataset has dimensions.
  std::vector<std::int64_t> const shape = tensor.shape.empty() ? std::vector<std::int64_t>{1} : tensor.shape;
  h5::Properties const links(KOZERO_HDF5_CALL(job, H5Pcreate(H5P_LINK_CREATE)));
  KOZERO_HDF5_CALL(job, H5Pset_create_intermediate_group(links.id(), 1));
  h5::Properties const creation(KOZERO_HDF5_CALL(job, H5Pcreate(H5P_DATASET_CREATE)));
  for (auto const& part : tensor.parts) map_part(job, creation, tensor, shape, part);
  std::string const name = (tensor.kind == "master" ? "parameters/" : "optimizer/" + tensor.kind + "/") + tensor.name;
  h5::Dataset dataset(
      KOZERO_HDF5_CALL(job, H5Dcreate2(file, name.c_str(), types[tensor.type], space_of(job, shape).id(), links.id(),
                                       creation.id(), H5P_DEFAULT)));
  dataset.close(job);
}

} // namespace

std::vector<WholeTensor> gather_whole(std::span<TensorShare const> own, Ranks& ranks) {
  auto tensors = tensors_of(own);
  auto const messages = ranks.gather(message_of(own, tensors));
  auto const digest = [&](std::size_t rank) { return messages[rank].substr(0, sizeof(Hash128::Digest)); };
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    if (digest(rank) == digest(0)) continue;
    throw SharedError(
        fmt::format("ranks 0 and {} have states of different tensors (a fault of kozero); please report it", rank));
  }
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    take_parts(tensors, static_cast<std::int64_t>(rank), messages[rank]);
  }
  return tensors;
}

void write_whole(fs::path const& path, std::span<WholeTensor const> tensors) {
  auto const job = writing(path);
  auto file = h5::create_file(path, job);
  Types const types;
  for (auto const& tensor : tensors) write_tensor(job, file.id(), types, tensor);
  file.close(job);
}

std::vector<Box> boxes_of(Interval part, std::vector<std::int64_t> const& shape) {
  std::vector<std::int64_t> slice(shape.size(), 1); // elements for one step along each dimension
  for (std::size_t d = shape.size(); d-- > 1;) slice[d - 1] = slice[d] * shape[d];
  std::vector<Box> boxes;
  for (std::int64_t at = part.begin; at < part.end;) {
    std::size_t along = 0;
    while (at % slice[along] != 0 || at + slice[along] > part.end) ++along;
    Box box{std::vector<std::int64_t>(shape.size()), shape};
    for (std::size_t d = 0; d < shape.size(); ++d) {
      box.begin[d] = at / slice[d] % shape[d];
      if (d < along) box.extent[d] = 1;
    }
    box.extent[along] = std::min((part.end - at) / slice[along], shape[along] - box.begin[along]);
    at += box.extent[along] * slice[along];
    boxes.push_back(std::move(box));
  }
  return boxes;
}

} // namespace kozero::checkpoint
