// Goroutines that compute and answer over a channel.
package main

import "fmt"

func work(seed uint64) uint64 {
	state := seed
	for i := 0; i < 4000000; i++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

func main() {
	answers := make(chan uint64)
	for i := uint64(0); i < 150; i++ {
		go func(seed uint64) { answers <- work(seed) }(i)
	}
	sum := uint64(0)
	for i := 0; i < 150; i++ {
		sum += <-answers
	}
	fmt.Println(sum)
}
