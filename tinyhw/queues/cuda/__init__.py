"""CUDA as a program calls it: what enters a capture (`record`), memory and streams (`world`), work as packets
(`stream`), calls as text (`text`). The machine that runs it is handed in."""
