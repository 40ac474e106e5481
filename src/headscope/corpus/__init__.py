"""What is measured over: texts and images, cut into windows of tokens, each with its sentence and its kind."""
