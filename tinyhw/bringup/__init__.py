"""The ladder that a new GPU, driver, emulator or prototype is brought up by: small programs, each with a reason, a time
limit and the rungs that it stands on. A rung is handed a bench over a Port, as drivers are; none knows of the mock."""
