#pragma once
#include <functional>

namespace kozero {

/// What the host does, again and again, while it waits for a lane whose work may itself wait for other ranks: it asks
/// for errors, which would leave the lane waiting for ever, and keeps its own messages moving, which those ranks may
/// need first.
///
///     WhileWaiting const watched([this] { look_for_errors(); return what_is_under_way(); });
///
/// Every fence and every wait for an event does so. While nothing is under way anywhere, they leave the waiting to the
/// device's driver, which does it better. Only while a lane is held back by other ranks does the host count as waiting
/// for them (core/heartbeat.hpp): else it waits for its own device, which may be slow or stuck by itself.
///
/// What gets on between launches (core/between_launches.hpp) does not get on here: a lane may be in the middle of it.
class WhileWaiting {
public:
  /// In the order of what counts where several look.
  enum class Seen { nothing, under_way, holds_back_lane };
  /// `look` never waits and gives no work to lanes; it may throw.
  explicit WhileWaiting(std::function<Seen()> look);
  ~WhileWaiting();
  WhileWaiting(WhileWaiting const&) = delete;
  WhileWaiting& operator=(WhileWaiting const&) = delete;

  /// Looks after everything.
  static Seen look();
  /// Until done() is true, or nothing is under way any more: then a caller waits in another way for the rest.
  static void wait(std::function<bool()> const& done);

private:
  std::function<Seen()> look_;
};

} // namespace kozero
