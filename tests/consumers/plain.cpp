// Knows nothing of fprnn: the flags that it is compiled with are the consumer's own.
int main() {}
