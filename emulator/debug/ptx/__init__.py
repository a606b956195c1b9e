"""What the debugger and reports have for PTX alone."""
