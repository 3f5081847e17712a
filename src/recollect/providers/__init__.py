"""What reaches outside the process: embedders and, later, language models. Only this package opens sockets."""
