#pragma once

#include "options.hpp"

namespace experiment {

/// Makes the folders of a job's models. argument_error, with nothing changed, when one cannot be written, has
/// files of another job, which would be mixed with its own, or checkpoints: without --resume any, with it
/// those of a run with other options.
void prepare_folders(const options& o);

}  // namespace experiment
