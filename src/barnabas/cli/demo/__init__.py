"""What `barnabas demo` is made of: orders, the processes it starts, a job on them, and the screen."""
