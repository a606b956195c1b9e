"""What the debugger and reports have for AMD's machine code alone."""
