"""NVIDIA's side of the mock: RM and UVM as their ioctls see them, channels, and the engines behind them."""
