#pragma once
#include <functional>

namespace kozero {

/// What the host does, again and again, while it waits for a lane whose work may itself wait for other ranks: it asks
/// for errors, which would leave the lane waiting for ever, and keeps its own messages moving, which those ranks may
/// need first.
///
///     WhileWaiting const watched([this] { look_for_errors(); return something_is_under_way(); });
///
/// Every fence and every wait for an event does so. While nothing is under way anywhere, they leave the waiting to the
/// device's driver, which does it better.
class WhileWaiting {
public:
  /// `look` never waits and gives no work to lanes; it says whether something is under way, and may throw.
  explicit WhileWaiting(std::function<bool()> look);
  ~WhileWaiting();
  WhileWaiting(WhileWaiting const&) = delete;
  WhileWaiting& operator=(WhileWaiting const&) = delete;

  /// Looks after everything; whether something is under way.
  static bool look();
  /// Until done() is true, or nothing is under way any more: then a caller waits in another way for the rest.
  static void wait(std::function<bool()> const& done);

private:
  std::function<bool()> look_;
};

} // namespace kozero
