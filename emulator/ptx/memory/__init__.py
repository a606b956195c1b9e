"""Memory as PTX's instructions have it: state spaces, moves, asynchronous copies, barriers in memory."""
