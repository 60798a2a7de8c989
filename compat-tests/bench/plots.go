package main

import (
	"image/color"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// colours of the servers, in their order; they can be told apart by the colour-blind.
var colours = []color.Color{
	color.RGBA{R: 0, G: 114, B: 178, A: 255}, color.RGBA{R: 230, G: 159, B: 0, A: 255},
	color.RGBA{R: 213, G: 94, B: 0, A: 255}, color.RGBA{R: 153, G: 153, B: 153, A: 255},
}

// plot draws every picture of the document.
func (r *report) plot(dir string) error {
	for _, p := range []struct {
		file, title, unit string
		loads             []string
		of                measure
		scale             float64
	}{
		{"commits.svg", "OffsetCommit of 10 partitions (connections / under way on each)", "thousand requests a second", r.loads("commit/"), rate, 1e-3},
		{"commits-p99.svg", "OffsetCommit: 99th percentile of the latency", "ms", r.loads("commit/"), p99, 1e-3},
		{"commits-cpu.svg", "OffsetCommit: CPU of the server for each request", "µs", r.loads("commit/"), cpu, 1},
		{"heartbeats.svg", "Heartbeat (connections)", "thousand requests a second", r.loads("heartbeat/"), rate, 1e-3},
		{"heartbeats-cpu.svg", "Heartbeat: CPU of the server for each request", "µs", r.loads("heartbeat/"), cpu, 1},
		{"fetches.svg", "OffsetFetch (connections / groups of each request)", "thousand requests a second", r.loads("fetch/"), rate, 1e-3},
		{"joins.svg", "Group formation (members x groups)", "thousand members a second", r.loads("join/"), rate, 1e-3},
	} {
		if err := r.bars(filepath.Join(dir, p.file), p.title, p.unit, p.loads, p.of, p.scale); err != nil {
			return err
		}
	}
	return r.plotStarts(filepath.Join(dir, "starts.svg"))
}

const (
	barWidth = vg.Length(11)
	width    = 18 * vg.Centimeter
	height   = 9 * vg.Centimeter
	// legendRoom is how much higher than the bars a picture is.
	legendRoom = 1.4
)

// bars draws a group of bars for each load, one for each server. What was not
// measured has none.
func (r *report) bars(file, title, unit string, loads []string, of measure, scale float64) error {
	p := newPlot(title, unit)
	for i, s := range order {
		values := make(plotter.Values, len(loads))
		for k, load := range loads {
			if x, ok := r.find(load, s); ok && of(x) != nil {
				values[k] = *of(x) * scale
			}
		}
		if err := addBars(p, values, titles[s], i, len(order)); err != nil {
			return err
		}
	}
	p.NominalX(loads...)
	p.Y.Max *= legendRoom
	return p.Save(width, height, file)
}

// plotStarts draws how long servers take until they are ready.
func (r *report) plotStarts(file string) error {
	p := newPlot("Ready with "+thousands(float64(r.Offsets))+" offsets", "s")
	for i, s := range r.Starts {
		if err := addBars(p, plotter.Values{s.Kill, s.Stop}, titles[s.Server], i, len(r.Starts)); err != nil {
			return err
		}
	}
	p.NominalX("after SIGKILL", "after an orderly stop")
	p.Y.Max *= legendRoom
	return p.Save(width, height, file)
}

func newPlot(title, unit string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text, p.Y.Min = title, unit, 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	return p
}

// addBars adds the bars of one server, i of n.
func addBars(p *plot.Plot, values plotter.Values, name string, i, n int) error {
	if len(values) == 0 {
		return nil
	}
	b, err := plotter.NewBarChart(values, barWidth)
	if err != nil {
		return err
	}
	b.Color, b.LineStyle.Width = colours[i], 0
	b.Offset = barWidth * (vg.Length(i) - vg.Length(n-1)/2)
	p.Add(b)
	p.Legend.Add(name, b)
	return nil
}
