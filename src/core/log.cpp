#include "core/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>

namespace kozero::log {

void start(Voice voice) {
  auto logger = spdlog::get("kozero");
  if (!logger) logger = spdlog::stderr_color_mt("kozero");
  logger->set_pattern("%^%v%$");
  logger->set_level(voice == Voice::speaks ? spdlog::level::info : spdlog::level::err);
  spdlog::set_default_logger(logger);
}

} // namespace kozero::log
