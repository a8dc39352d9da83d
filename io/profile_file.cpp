#include "io/profile_file.hpp"

#include "core/error.hpp"
#include "io/json.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

namespace kozero {

namespace {

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1000; }

std::string name_of(Profile::Span const& span) {
  return *span.of ? fmt::format("{} {}", span.what, span.of) : std::string(span.what);
}

Json track_name(int rank, int track, std::string const& name) {
  return {{"ph", "M"}, {"name", "thread_name"}, {"pid", rank}, {"tid", track}, {"args", {{"name", name}}}};
}

Json complete(int rank, Profile::Span const& span) {
  return {{"ph", "X"},
          {"name", name_of(span)},
          {"pid", rank},
          {"tid", span.track},
          {"ts", microseconds(span.begin_ns)},
          {"dur", microseconds(span.end_ns - span.begin_ns)}};
}

/// Side by side with others: a pair of events that a number ties together.
void write_message(std::ostream& file, int rank, Profile::Span const& span, std::int64_t number) {
  Json event = {{"ph", "b"},
                {"cat", "messages"},
                {"id", number},
                {"name", name_of(span)},
                {"pid", rank},
                {"tid", span.track},
                {"ts", microseconds(span.begin_ns)},
                {"args", {{"purpose", span.of}, {"bytes", span.bytes}, {"early_bytes", span.early_bytes}}}};
  file << ",\n" << event;
  event["ph"] = "e";
  event["ts"] = microseconds(span.end_ns);
  event.erase("args");
  file << ",\n" << event;
}

void write_events(std::ostream& file, int rank, Profile const& profile) {
  file << Json{
      {"ph", "M"}, {"name", "process_name"}, {"pid", rank}, {"args", {{"name", fmt::format("rank {}", rank)}}}};
  for (int track = 0; track < profile.tracks(); ++track) {
    file << ",\n" << track_name(rank, track, profile.track_name(track));
  }
  std::int64_t number = 0;
  for (auto const& span : profile.spans()) {
    if (span.track == Profile::message_track) {
      write_message(file, rank, span, ++number);
    } else {
      file << ",\n" << complete(rank, span);
    }
  }
}

} // namespace

void write_profile(std::filesystem::path const& run_folder, int rank, Profile const& profile) {
  auto const folder = run_folder / "profile";
  std::string const path = folder / fmt::format("rank-{:03}.json", rank);
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::filesystem::remove(path, ignored); // whatever it is: a link is not followed, a pipe not waited for
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << "{\"displayTimeUnit\": \"ms\", \"otherData\": " << Json{{"dropped", profile.dropped()}}
       << ", \"traceEvents\": [\n";
  write_events(file, rank, profile);
  file << "\n]}\n";
  file.close();
  if (!file) {
    throw Error(fmt::format("profile '{}' cannot be written ({}); free space or set run.profile: false", path,
                            std::strerror(errno)));
  }
}

} // namespace kozero
