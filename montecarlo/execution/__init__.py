"""Who does the work: tasks, and the threads, processes or clusters that do them."""
