"""What each kind of object adds to the simulated cluster: how it is made, changed and read."""
