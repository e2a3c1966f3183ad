"""The controller's decisions: which writes to the tree, and which changes of the image, a command means."""
