#include "io/checkpoint_whole.hpp"

#include "core/hash.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_format.hpp"
#include "layout/shape.hpp"

#include <algorithm>
#include <cstring>
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

std::string name_of(WholeTensor const& tensor) {
  return (tensor.kind == "master" ? "parameters/" : "optimizer/" + tensor.kind + "/") + tensor.name;
}

/// A virtual dataset has dimensions.
std::vector<std::int64_t> shape_of(WholeTensor const& tensor) {
  return tensor.shape.empty() ? std::vector<std::int64_t>{1} : tensor.shape;
}

/// One box of a virtual dataset, and where its elements are.
struct Mapping {
  std::string file, dataset;
  std::vector<hsize_t> first, last;      // of the box, inclusive
  hsize_t held_first = 0, held_last = 0; // of the rank's dataset
  auto key() const { return std::tie(file, dataset, first, last, held_first, held_last); }
  friend bool operator==(Mapping const& a, Mapping const& b) { return a.key() == b.key(); }
};

std::vector<Mapping> wanted_mappings(WholeTensor const& tensor) {
  std::vector<Mapping> mappings;
  for (auto const& part : tensor.parts) {
    std::int64_t at = 0;
    for (Box const& box : boxes_of(part.interval, shape_of(tensor))) {
      Mapping mapping{rank_file_name(part.rank), tensor.name + "/" + tensor.kind};
      for (std::size_t d = 0; d < box.begin.size(); ++d) {
        mapping.first.push_back(static_cast<hsize_t>(box.begin[d]));
        mapping.last.push_back(static_cast<hsize_t>(box.begin[d] + box.extent[d] - 1));
      }
      mapping.held_first = static_cast<hsize_t>(at);
      at += elements_of(box.extent);
      mapping.held_last = static_cast<hsize_t>(at - 1);
      mappings.push_back(std::move(mapping));
    }
  }
  std::ranges::sort(mappings, {}, &Mapping::key);
  return mappings;
}

/// "…" of H5Pget_virtual_filename and its like, which tell the length of a text first.
template <class Get>
std::string text_of(h5::Job const& job, Get const& get) {
  auto const size = static_cast<std::size_t>(KOZERO_HDF5_CALL(job, get(nullptr, std::size_t{0})));
  std::string text(size + 1, '\0');
  KOZERO_HDF5_CALL(job, get(text.data(), text.size()));
  text.resize(size);
  return text;
}

std::vector<Mapping> found_mappings(h5::Job const& job, hid_t creation, std::size_t dimensions) {
  std::size_t count = 0;
  KOZERO_HDF5_CALL(job, H5Pget_virtual_count(creation, &count));
  std::vector<Mapping> mappings(count);
  for (std::size_t i = 0; i < count; ++i) {
    Mapping& found = mappings[i];
    found.file =
        text_of(job, [&](char* to, std::size_t size) { return H5Pget_virtual_filename(creation, i, to, size); });
    found.dataset =
        text_of(job, [&](char* to, std::size_t size) { return H5Pget_virtual_dsetname(creation, i, to, size); });
    h5::Dataspace const box(KOZERO_HDF5_CALL(job, H5Pget_virtual_vspace(creation, i)));
    h5::Dataspace const held(KOZERO_HDF5_CALL(job, H5Pget_virtual_srcspace(creation, i)));
    found.first.resize(dimensions);
    found.last.resize(dimensions);
    KOZERO_HDF5_CALL(job, H5Sget_select_bounds(box.id(), found.first.data(), found.last.data()));
    if (H5Sget_simple_extent_ndims(held.id()) != 1) continue; // not as a rank's dataset is
    KOZERO_HDF5_CALL(job, H5Sget_select_bounds(held.id(), &found.held_first, &found.held_last));
  }
  std::ranges::sort(mappings, {}, &Mapping::key);
  return mappings;
}

/// Its shape, type and mappings are what write_tensor() makes.
bool is_as_written(h5::Job const& job, hid_t file, Types const& types, WholeTensor const& tensor) {
  auto const dataset = h5::open_any_dataset(job, file, name_of(tensor));
  h5::Dataspace const space(KOZERO_HDF5_CALL(job, H5Dget_space(dataset.id())));
  h5::Datatype const type(KOZERO_HDF5_CALL(job, H5Dget_type(dataset.id())));
  h5::Properties const creation(KOZERO_HDF5_CALL(job, H5Dget_create_plist(dataset.id())));
  auto const shape = shape_of(tensor);
  std::vector<hsize_t> extents(shape.size());
  bool const same_rank = H5Sget_simple_extent_ndims(space.id()) == static_cast<int>(shape.size());
  if (!same_rank || H5Pget_layout(creation.id()) != H5D_VIRTUAL) return false;
  KOZERO_HDF5_CALL(job, H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr));
  return std::ranges::equal(extents, shape, [](hsize_t a, std::int64_t b) { return a == static_cast<hsize_t>(b); }) &&
         types.find(type.id()) == tensor.type &&
         found_mappings(job, creation.id(), shape.size()) == wanted_mappings(tensor);
}

void write_tensor(h5::Job const& job, hid_t file, Types const& types, WholeTensor const& tensor) {
  auto const shape = shape_of(tensor);
  h5::Properties const links(KOZERO_HDF5_CALL(job, H5Pcreate(H5P_LINK_CREATE)));
  KOZERO_HDF5_CALL(job, H5Pset_create_intermediate_group(links.id(), 1));
  h5::Properties const creation(KOZERO_HDF5_CALL(job, H5Pcreate(H5P_DATASET_CREATE)));
  for (auto const& part : tensor.parts) map_part(job, creation, tensor, shape, part);
  std::string const name = name_of(tensor);
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

std::vector<std::string> faults_of_whole(fs::path const& path, std::span<WholeTensor const> tensors) {
  auto const job = reading(path);
  auto const file = h5::open_file(path, job);
  Types const types;
  std::vector<std::string> faults;
  for (auto const& tensor : tensors) {
    auto const dataset_job = reading(path, name_of(tensor));
    try {
      if (!is_as_written(dataset_job, file.id(), types, tensor)) {
        faults.push_back(fmt::format("{} (it does not show what the rank files hold)", dataset_job.problem));
      }
    } catch (Error const& error) {
      faults.emplace_back(error.what());
    }
  }
  return faults;
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
