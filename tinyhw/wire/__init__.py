"""What goes over the wire to a GPU: packets, queues, ioctls, code objects. No policy, no state."""
