"""What runs, and when? Handles, timers, wake-ups, signals, and the reactor that turns them over."""
