//! The plots of the page, as SVG.

use std::error::Error;

use plotters::prelude::*;

use crate::live::{View, CHARGE_STEP, DIFFERENCE_STEP_NS, HISTORY};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SIZE: (u32, u32) = (560, 320);
const INK: RGBColor = RGBColor(31, 90, 150);
const FONT: &str = "sans-serif";
/// The first slot of a map.
const FIRST_SLOT: usize = 3;

/// A chart of steps: bin i is from `begin + i * step` on.
fn steps(title: &str, x: &str, y: &str, begin: f64, step: f64, values: &[f64]) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let highest = values.iter().copied().fold(1.0, f64::max) * 1.08;
        let end = begin + step * values.len() as f64;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, (FONT, 16))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(begin..end, 0.0..highest)?;
        chart.configure_mesh().disable_x_mesh().x_desc(x).y_desc(y).label_style((FONT, 11)).draw()?;
        chart.draw_series(values.iter().enumerate().map(|(i, value)| {
            let from = begin + step * i as f64;
            Rectangle::new([(from, 0.0), (from + step, *value)], INK.filled())
        }))?;
        area.present()?;
    }
    Ok(svg)
}

fn as_float(values: &[u64]) -> Vec<f64> {
    values.iter().map(|value| *value as f64).collect()
}

/// Events a second.
pub fn rates(view: &View) -> Result<String> {
    steps("Events a second", "seconds", "1/s", -(HISTORY as f64), 1.0, &view.rates)
}

/// Hits by charge.
pub fn charges(view: &View) -> Result<String> {
    steps("Charge", "counts x gain", "hits", 0.0, CHARGE_STEP as f64, &as_float(&view.charges))
}

/// Pairs of hits by difference of time.
pub fn differences(view: &View) -> Result<String> {
    let title = if view.maps.len() == 1 {
        "Time between hits of different modules"
    } else {
        "Time between hits of different crates"
    };
    steps(title, "ns", "pairs", 0.0, f64::from(DIFFERENCE_STEP_NS), &as_float(&view.differences))
}

/// Hits by slot and channel.
pub fn map(name: &str, hits: &[Vec<u64>]) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let most = hits.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
        let channels = hits.first().map_or(0, Vec::len);
        let mut chart = ChartBuilder::on(&area)
            .caption(format!("Hits of crate {name}, at most {most}"), (FONT, 16))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(FIRST_SLOT..FIRST_SLOT + hits.len(), 0..channels)?;
        chart.configure_mesh().disable_mesh().x_desc("slot").y_desc("channel").label_style((FONT, 11)).draw()?;
        let cells = hits
            .iter()
            .enumerate()
            .flat_map(|(slot, row)| row.iter().enumerate().map(move |(channel, n)| (slot + FIRST_SLOT, channel, *n)));
        chart.draw_series(cells.map(|(slot, channel, n)| {
            let shade = n as f64 / most;
            let mix = |full: u8| (255.0 - (255.0 - f64::from(full)) * shade) as u8;
            Rectangle::new(
                [(slot, channel), (slot + 1, channel + 1)],
                RGBColor(mix(INK.0), mix(INK.1), mix(INK.2)).filled(),
            )
        }))?;
        area.present()?;
    }
    Ok(svg)
}
