// Command example is a Sarama consumer group.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/IBM/sarama"
)

type printer struct{}

func (printer) Setup(s sarama.ConsumerGroupSession) error {
	fmt.Println("generation", s.GenerationID(), "owns", s.Claims())
	return nil
}
func (printer) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (printer) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for m := range c.Messages() {
		fmt.Printf("%s/%d@%d: %s\n", m.Topic, m.Partition, m.Offset, m.Value)
		s.MarkMessage(m, "")
	}
	return nil
}

func main() {
	config := sarama.NewConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	group, err := sarama.NewConsumerGroup([]string{"127.0.0.1:9092"}, "printers", config)
	if err != nil {
		log.Fatal(err)
	}
	for err == nil {
		err = group.Consume(context.Background(), []string{"greetings"}, printer{})
	}
	log.Fatal(err)
}
