#include "support/program.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace kozero::test {

namespace {

std::vector<std::string> complete_environment(Program::Environment all) {
  all.emplace("OMP_NUM_THREADS", "1"); // what is there already stays
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string const text = *entry;
    std::size_t const equals = text.find('=');
    if (equals != std::string::npos) all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  std::vector<std::string> entries;
  for (auto const& [name, value] : all) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

/// As C takes them; points into the strings.
std::vector<char*> pointers(std::vector<std::string> const& strings) {
  std::vector<char*> all;
  for (auto const& string : strings) all.push_back(const_cast<char*>(string.c_str()));
  all.push_back(nullptr);
  return all;
}

/// The process that started this one; 0 where there is none, or no such process.
int parent_of(std::filesystem::path const& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  // "number (name) state parent": a name may have spaces and brackets.
  std::istringstream rest(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string state;
  int parent = 0;
  return rest >> state >> parent ? parent : 0;
}

/// What has no children, of all that a process has started.
std::vector<int> leaves_below(int process) {
  std::map<int, std::vector<int>> children;
  for (auto const& entry : std::filesystem::directory_iterator("/proc")) {
    int const number = std::atoi(entry.path().filename().c_str());
    if (number > 0) children[parent_of(entry.path())].push_back(number);
  }
  std::vector<int> leaves;
  std::vector<int> family = children[process];
  for (std::size_t i = 0; i < family.size(); ++i) {
    auto const& more = children[family[i]];
    if (more.empty()) leaves.push_back(family[i]);
    family.insert(family.end(), more.begin(), more.end());
  }
  return leaves;
}

} // namespace

Program::Program(std::vector<std::string> const& arguments, Environment const& environment) {
  auto const entries = complete_environment(environment);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  int const flags = O_WRONLY | O_CREAT | O_TRUNC;
  std::string const out = folder_.file("out");
  std::string const err = folder_.file("err");
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), flags, 0600);
  // Whoever runs the tests may have had these ignored (nohup); programs would inherit that.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t heeded;
  sigemptyset(&heeded);
  for (int const number : {SIGHUP, SIGINT, SIGPIPE}) sigaddset(&heeded, number);
  posix_spawnattr_setsigdefault(&attributes, &heeded);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  int const error = posix_spawnp(&process_, arguments.front().c_str(), &files, &attributes, pointers(arguments).data(),
                                 pointers(entries).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    throw std::runtime_error(fmt::format("{} cannot be started: {}", arguments.front(), std::strerror(error)));
}

Program::~Program() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void Program::signal(int number) const {
  if (process_ > 0) ::kill(process_, number);
}

void Program::signal_all(int number) const {
  if (process_ <= 0) return;
  auto const leaves = leaves_below(process_);
  signal(number);
  for (int const process : leaves) ::kill(process, number);
}

ProgramResult Program::wait(std::chrono::seconds at_most) {
  auto const start = std::chrono::steady_clock::now();
  int status = 0;
  while (::waitpid(process_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() - start > at_most) {
      throw std::runtime_error("the program takes too long; it said:\n" + folder_.read("err"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  process_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), folder_.read("out"), folder_.read("err")};
}

} // namespace kozero::test
