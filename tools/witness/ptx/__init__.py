"""What PTX instructions do, in Python integers and exact floats, from NVIDIA's manual alone: a second opinion on
`emulator/ptx`, of which it uses the parser, the table of forms and the launcher, and nothing that says what an
instruction means."""
