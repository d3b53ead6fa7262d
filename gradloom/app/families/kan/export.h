// Spline networks for other programs.
#pragma once

#include "gradloom/app/model/export.h"
#include "gradloom/session/session.h"

namespace gradloom::app {

Result<ExportedNetwork> export_kan(Session& session, const ExportNetworkOptions& options);

}  // namespace gradloom::app
