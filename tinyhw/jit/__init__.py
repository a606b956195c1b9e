"""TinyJit: a function's launches are recorded once and replayed with other arguments."""
