"""Facts from the server objects of frameworks; each framework is imported inside its own file only."""
