"""The debugger at a terminal: prompts with commands in gdb's words (`prompt`), and those of a launch (`shell`)."""
