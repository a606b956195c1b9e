"""From a tensor graph to programs: schedule, kernels, lowering, linearizing, rendering."""
