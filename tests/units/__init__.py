"""One module at a time, without a loop around it: what the layers below the loop promise each other."""
