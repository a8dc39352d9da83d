#include "comm/watch/rank_watch.hpp"

#include "comm/mpi_calls.hpp"
#include "comm/watch/judgement.hpp"
#include "comm/watch/keeper.hpp"
#include "comm/watch/keeper_link.hpp"
#include "comm/watch/stragglers.hpp"
#include "core/format.hpp"
#include "core/heartbeat.hpp"
#include "core/log.hpp"
#include "core/quiet_thread.hpp"
#include "core/runtime.hpp"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

namespace kozero {

namespace {

using namespace watch;
using namespace std::chrono_literals;

constexpr std::int64_t n_keepers = 2;
constexpr std::int64_t connected_by = 15; // ticks; who has not come by then is named

/// Ends all ranks, by a thread of its own: what it calls may wait for locks of a main thread that is stuck, or for a
/// launcher that is gone.
[[noreturn]] void end_run(std::string const& message) {
  start_quiet_thread([message] {
    if (!message.empty()) log::error("{}", message);
    Runtime::abort(exit_failed);
  }).detach();
  std::this_thread::sleep_for(5s);
  _exit(exit_failed);
}

Patience patience_of(int rank, std::optional<double> stall_limit_s) {
  Patience patience;
  if (stall_limit_s) patience.stalled = std::llround(std::ceil(*stall_limit_s));
  return patience.and_more(2 * std::min<std::int64_t>(rank, n_keepers));
}

} // namespace

struct RankWatch::Impl {
  Impl(Ranks& ranks, std::optional<double> stall_limit_s);
  ~Impl();
  void leave();

private:
  void run();
  bool ran_to_the_end();
  void schedule();
  void tick();
  void look_at_main_thread();
  bool gets_on() const;
  void look_at_ranks();
  void look_for_stragglers();
  void look_at_keepers();
  void look_at_launcher();
  void name_missing();
  void settle();
  void end_silently();
  std::string called() const { return name_ranks({rank_}, keeper_->ranks()); }

  int rank_;
  Patience patience_;
  pid_t parent_ = getppid();
  asio::io_context context_;
  asio::steady_timer timer_{context_};
  std::optional<Keeper> keeper_;
  std::vector<std::unique_ptr<KeeperLink>> links_;
  Stragglers stragglers_;
  std::int64_t ticks_ = 0;
  std::int64_t orphan_ticks_ = 0;
  Heartbeat::Reading seen_;
  Report report_;
  std::optional<std::int64_t> left_at_; // ticks_, when this rank had no more need of the others
  bool has_failed_ = false;
  std::atomic<bool> has_ended_ = false;
  std::thread thread_; // last: it uses the rest
};

RankWatch::Impl::Impl(Ranks& ranks, std::optional<double> stall_limit_s)
    : rank_(ranks.rank()), patience_(patience_of(rank_, stall_limit_s)) {
  std::optional<Tcp::acceptor> acceptor;
  if (rank_ < n_keepers && ranks.size() > 1) {
    allow_open_files(ranks.size());
    acceptor = listen(context_);
  }
  Contact const own = make_contact(acceptor);
  std::vector<std::string> hosts;
  std::vector<Contact> keepers;
  for (std::string const& text : ranks.gather(own.to_text())) {
    Contact contact = Contact::of_text(text);
    hosts.push_back(contact.host);
    if (std::ssize(keepers) < n_keepers) keepers.push_back(std::move(contact));
  }
  auto const changed = [this] { settle(); };
  keeper_.emplace(std::move(acceptor), Keeper::Self{rank_, own.token}, hosts, changed);
  for (int k = 0; k < static_cast<int>(keepers.size()); ++k) {
    if (k == rank_) continue;
    Contact const& keeper = keepers[static_cast<std::size_t>(k)];
    links_.push_back(std::make_unique<KeeperLink>(context_, k, Hello{keeper.token, rank_}, keeper.endpoints(own.host),
                                                  KeeperLink::Told{changed, [this] { end_silently(); }}));
  }
  thread_ = start_quiet_thread([this] { run(); });
}

/// Where it has not left, its connections close, and the others see that.
RankWatch::Impl::~Impl() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
}

void RankWatch::Impl::leave() {
  if (!thread_.joinable()) return;
  heartbeat().reach("the run's end");
  asio::post(context_, [this] {
    report_.leaves = 1;
    look_at_main_thread();
    for (auto const& link : links_) link->leave();
    settle();
  });
  // What this rank sent last may need its MPI library to be called, for others to come to their end.
  wait_until([this] {
    keep_messages_moving();
    return has_ended_.load();
  });
  thread_.join();
}

void RankWatch::Impl::run() {
  asio::post(context_, [this] { look_at_main_thread(); });
  keeper_->start();
  for (auto const& link : links_) link->start();
  schedule();
  while (!ran_to_the_end()) schedule();
  has_ended_ = true;
}

/// What fails in a tick, as memory may, must not make this rank look silent: the next one tries again.
bool RankWatch::Impl::ran_to_the_end() try {
  context_.run();
  return true;
} catch (std::exception const&) {
  has_failed_ = true; // memory for words may lack too: the next tick says it
  return false;
}

/// The next tick is a second from now: however long this process was stopped, one tick has gone by.
void RankWatch::Impl::schedule() {
  timer_.expires_after(1s);
  timer_.async_wait([this](asio::error_code const& error) {
    if (error) return;
    schedule();
    tick();
  });
}

void RankWatch::Impl::tick() {
  ++ticks_;
  if (std::exchange(has_failed_, false)) log::warn("warning: the watch of {} failed in a tick; it goes on", called());
  ++report_.idle_ticks;
  look_at_main_thread();
  keeper_->tick();
  for (auto const& link : links_) link->tick();
  look_at_ranks();
  look_at_keepers();
  look_at_launcher();
  settle();
  if (rank_ == 0 && ticks_ == connected_by) name_missing();
}

/// And tells the keepers.
void RankWatch::Impl::look_at_main_thread() {
  auto const now = heartbeat().read();
  if (now.beats != seen_.beats || now.collectives != seen_.collectives) report_.idle_ticks = 0;
  seen_ = now;
  auto const place = fmt::format("{}{}{}", now.what, *now.of == 0 ? "" : " of ", now.of);
  report_.place.fill(0);
  std::copy_n(place.begin(), std::min(place.size(), report_.place.size() - 1), report_.place.begin());
  report_.collectives = now.collectives;
  report_.batches = now.batches;
  report_.busy_ns = now.busy_ns;
  report_.waits = now.waits ? 1 : 0;
  keeper_->note(report_);
  for (auto const& link : links_) link->send(report_);
}

/// As long as this rank's own work gets on, nobody is missed by it: what failed may be a connection alone.
bool RankWatch::Impl::gets_on() const { return report_.idle_ticks < patience_.lost; }

void RankWatch::Impl::look_at_ranks() {
  if (left_at_ || (gets_on() && keeper_->ranks().size() > 1)) return look_for_stragglers();
  if (auto const verdict = judge(keeper_->ranks(), patience_)) {
    std::string const message =
        fmt::format("kozero: {}", explain(*verdict, keeper_->ranks(), patience_.stalled.value_or(0)));
    keeper_->tell(Word::end);
    end_run(message);
  }
  look_for_stragglers();
}

void RankWatch::Impl::look_for_stragglers() {
  if (rank_ != 0) return;
  for (auto const& line : stragglers_.look(keeper_->ranks())) log::warn("warning: {}", line);
}

/// Where nobody is left who would say more.
void RankWatch::Impl::look_at_keepers() {
  if (left_at_ || gets_on()) return;
  Patience const patience = patience_.and_more(2);
  bool missed = false;
  for (auto const& link : links_) {
    if (!link->was_up()) continue;
    if (!link->is_missed(patience)) return;
    missed = true;
  }
  if (!missed) return;
  std::vector<int> keepers;
  for (auto const& link : links_) keepers.push_back(link->keeper());
  end_run(fmt::format("kozero: {} hears nothing of {} (gone, stopped, or the network between them is dead); look at "
                      "those nodes, then go on with --resume auto",
                      called(), name_ranks(keepers, keeper_->ranks())));
}

/// A rank without its launcher is no longer of a job that anybody sees, and would write beside the next one.
void RankWatch::Impl::look_at_launcher() {
  if (keeper_->ranks().size() == 1 || getppid() == parent_) return;
  if (++orphan_ticks_ < patience_.lost) return;
  keeper_->tell(Word::end);
  end_run(fmt::format(
      "kozero: {} has lost its launcher (process {}, which started it, has ended); go on with --resume auto", called(),
      parent_));
}

void RankWatch::Impl::name_missing() {
  std::vector<int> missing;
  for (int r = 0; r < static_cast<int>(keeper_->ranks().size()); ++r) {
    if (keeper_->ranks()[static_cast<std::size_t>(r)].link == RankState::Link::none) missing.push_back(r);
  }
  if (missing.empty()) return;
  log::warn("warning: {} cannot be watched (no connection from there to {} within {}: a firewall?); the run goes on, "
            "and would wait for a stuck rank there for ever",
            name_ranks(missing, keeper_->ranks()), called(), format_duration(connected_by));
}

/// Whether this rank is at its end and nobody needs it any more.
void RankWatch::Impl::settle() {
  if (!report_.leaving()) return;
  if (!left_at_) {
    if (!keeper_->others_have_left()) return;
    keeper_->dismiss();
    left_at_ = ticks_;
  }
  if (!std::ranges::all_of(links_, [](auto const& link) { return link->is_done(); })) return;
  // Closing first would take the last word from who has not read it yet.
  if (!keeper_->has_connections() || ticks_ - *left_at_ >= patience_.lost) context_.stop();
}

/// A keeper has said why; as a rule its MPI_Abort is there before this.
void RankWatch::Impl::end_silently() {
  keeper_->tell(Word::end);
  std::this_thread::sleep_for(2s);
  end_run("");
}

RankWatch::RankWatch(Ranks& ranks, std::optional<double> stall_limit_s)
    : impl_(std::make_unique<Impl>(ranks, stall_limit_s)) {}
RankWatch::~RankWatch() = default;
void RankWatch::leave() { impl_->leave(); }

} // namespace kozero
