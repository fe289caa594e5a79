//! Pictures of figures: line and bar charts as SVG, the same bytes for the same figures.
//!
//! Who calls it: reports that show a curve or a comparison. A chart is one self-contained text: no script, no address,
//! no font file. Its colours follow the reader's light or dark scheme; a renderer that knows no style sheets draws the
//! light one. Never: a figure that was computed here.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A named line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points in the order of their x; those that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

/// Lines over a common pair of axes, both of which include their zero where values are positive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineChart {
    /// What the picture shows.
    pub title: String,
    /// Quantity and unit from left to right.
    pub x_label: String,
    /// Quantity and unit from bottom to top.
    pub y_label: String,
    /// The lines.
    pub series: Vec<Series>,
    /// A vertical rule at this place, with its name.
    pub mark_x: Option<(f64, String)>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bar {
    /// Name at its left.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// True for the bar that the others are compared with.
    pub reference: bool,
}

/// Bars from left to right, one below the other, with their values at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BarChart {
    /// What the picture shows.
    pub title: String,
    /// Quantity and unit of the lengths.
    pub x_label: String,
    /// The bars, top to bottom.
    pub bars: Vec<Bar>,
}

/// A colour on light ground, and its counterpart on dark ground.
struct Ink {
    light: RGBColor,
    dark: &'static str,
}

const GROUND: Ink = Ink { light: RGBColor(255, 255, 254), dark: "#16181d" };
const TEXT: Ink = Ink { light: RGBColor(31, 35, 41), dark: "#e6e8eb" };
const FAINT: Ink = Ink { light: RGBColor(93, 101, 112), dark: "#a3abb8" };
const GRID: Ink = Ink { light: RGBColor(226, 229, 233), dark: "#2c313a" };
const MARK: Ink = Ink { light: RGBColor(110, 88, 40), dark: "#d9b45f" };
/// Colours of lines, told apart by people who see few colours, too.
const LINES: [Ink; 6] = [
    Ink { light: RGBColor(0, 95, 170), dark: "#6cb4f5" },
    Ink { light: RGBColor(200, 75, 0), dark: "#ff9b57" },
    Ink { light: RGBColor(0, 125, 90), dark: "#4fd0a5" },
    Ink { light: RGBColor(150, 60, 140), dark: "#e094d6" },
    Ink { light: RGBColor(125, 105, 0), dark: "#d8c24a" },
    Ink { light: RGBColor(85, 90, 100), dark: "#b6bcc6" },
];

/// Width of every picture, in pixels of its own coordinates.
const WIDTH: u32 = 760;
/// Height of a line chart.
const HEIGHT: u32 = 420;
/// Height of one bar with the gap below it.
const BAR_STEP: u32 = 28;
/// Height of the title.
const TITLE_HEIGHT: i32 = 40;
/// Height of one row of the legend.
const LEGEND_HEIGHT: i32 = 22;
/// Estimated width of one character at the size of small text.
const CHAR_WIDTH: f64 = 7.4;
/// Size of small text; the library draws it about a fifth smaller.
const TEXT_SIZE: u32 = 16;
/// Size of the title.
const TITLE_SIZE: u32 = 22;

impl LineChart {
    /// Draws the chart.
    pub fn to_svg(&self) -> String {
        draw(&self.title, HEIGHT, |area| self.paint(area))
    }

    fn finite(&self) -> impl Iterator<Item = (f64, f64)> {
        let all = self.series.iter().flat_map(|series| series.points.iter().copied());
        all.filter(|(x, y)| x.is_finite() && y.is_finite())
    }

    fn paint(&self, area: &Area<'_>) -> Painted {
        let marked = self.mark_x.iter().map(|(x, _)| *x).filter(|x| x.is_finite());
        let (x_low, x_high) = bounds(self.finite().map(|(x, _)| x).chain(marked), false);
        let (y_low, y_high) = bounds(self.finite().map(|(_, y)| y), true);
        let legend_rows = self.legend(area)?;
        let mut chart = ChartBuilder::on(area)
            .margin_top(TITLE_HEIGHT + LEGEND_HEIGHT * legend_rows + 6)
            .margin_right(28)
            .margin_left(14)
            .margin_bottom(12)
            .x_label_area_size(46)
            .y_label_area_size(74)
            .build_cartesian_2d(x_low..x_high, y_low..y_high)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID.light)
            .light_line_style(TRANSPARENT)
            .axis_style(FAINT.light)
            .x_labels(9)
            .y_labels(7)
            .x_label_formatter(&|value| number(*value))
            .y_label_formatter(&|value| number(*value))
            .label_style(("sans-serif", TEXT_SIZE).into_font().color(&FAINT.light))
            .axis_desc_style(("sans-serif", TEXT_SIZE).into_font().color(&TEXT.light))
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .draw()?;
        if let Some((x, name)) = self.mark_x.as_ref().filter(|(x, _)| x.is_finite()) {
            let rule = [(*x, y_low), (*x, y_high)];
            chart.draw_series(DashedLineSeries::new(rule, 5, 4, MARK.light.stroke_width(2)))?;
            let (at, top) = chart.backend_coord(&(*x, y_high));
            let left = at > WIDTH.cast_signed() / 2;
            let anchor = Pos::new(if left { HPos::Right } else { HPos::Left }, VPos::Top);
            let style = ("sans-serif", TEXT_SIZE).into_font().color(&MARK.light).pos(anchor);
            area.draw(&Text::new(name.as_str(), (if left { at - 6 } else { at + 6 }, top + 2), style))?;
        }
        for (series, ink) in self.series.iter().zip(LINES.iter().cycle()) {
            let points: Vec<(f64, f64)> =
                series.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
            chart.draw_series(LineSeries::new(points.iter().copied(), ink.light.stroke_width(3)))?;
            // Many points would run into each other.
            if points.len() <= 60 {
                chart.draw_series(points.iter().map(|at| Circle::new(*at, 3, ink.light.filled())))?;
            }
        }
        Ok(())
    }

    /// Draws the legend below the title; answers its number of rows.
    fn legend(&self, area: &Area<'_>) -> Result<i32, Failure> {
        if self.series.len() < 2 {
            return Ok(0);
        }
        let (mut x, mut row) = (16, 0);
        for (series, ink) in self.series.iter().zip(LINES.iter().cycle()) {
            let width = 40 + text_width(&series.name);
            if x > 16 && x + width > WIDTH.cast_signed() - 16 {
                (x, row) = (16, row + 1);
            }
            let y = TITLE_HEIGHT + LEGEND_HEIGHT * row + 10;
            area.draw(&PathElement::new(vec![(x, y), (x + 22, y)], ink.light.stroke_width(3)))?;
            let style = label(&TEXT, HPos::Left);
            area.draw(&Text::new(series.name.as_str(), (x + 28, y), style))?;
            x += width;
        }
        Ok(row + 1)
    }
}

impl BarChart {
    /// Draws the chart.
    pub fn to_svg(&self) -> String {
        let rows = u32::try_from(self.bars.len()).unwrap_or(u32::MAX).min(10_000);
        draw(&self.title, TITLE_HEIGHT.cast_unsigned() + 10 + BAR_STEP * rows + 40, |area| self.paint(area))
    }

    fn paint(&self, area: &Area<'_>) -> Painted {
        let widest = self.bars.iter().map(|bar| text_width(&bar.name)).max().unwrap_or(0);
        let left = (16 + widest + 10).min(WIDTH.cast_signed() * 3 / 5);
        let values = || self.bars.iter().map(|bar| bar.value).filter(|value| value.is_finite());
        let value_room = values().map(|value| text_width(&number(value))).max().unwrap_or(0) + 18;
        let right = WIDTH.cast_signed() - 16 - value_room;
        let (low, high) = bounds(values(), true);
        // Where nothing is negative the bars begin at the left edge.
        let low = if values().all(|value| value >= 0.0) { 0.0 } else { low };
        let place = |value: f64| left + to_pixels((value - low) / (high - low) * f64::from(right - left));
        let top = TITLE_HEIGHT + 10;
        let step = BAR_STEP.cast_signed();
        for (index, bar) in self.bars.iter().enumerate() {
            let y = top + step * i32::try_from(index).unwrap_or(i32::MAX / step - 1_000);
            let middle = y + step / 2;
            let name = fitted(&bar.name, left - 26);
            area.draw(&Text::new(name, (left - 10, middle), label(&TEXT, HPos::Right)))?;
            if !bar.value.is_finite() {
                area.draw(&Text::new("none", (left + 6, middle), label(&FAINT, HPos::Left)))?;
                continue;
            }
            let ink = if bar.reference { &LINES[5] } else { &LINES[0] };
            let (from, to) = (place(bar.value.min(0.0)), place(bar.value.max(0.0)));
            let shape = [(from, y + 5), (to.max(from + 1), y + step - 5)];
            area.draw(&Rectangle::new(shape, ink.light.filled()))?;
            area.draw(&Text::new(number(bar.value), (to + 6, middle), label(&TEXT, HPos::Left)))?;
        }
        let rows = i32::try_from(self.bars.len()).unwrap_or(0);
        let zero = place(0.0);
        area.draw(&PathElement::new(vec![(zero, top), (zero, top + step * rows)], FAINT.light))?;
        area.draw(&Text::new(
            self.x_label.as_str(),
            (left, top + step * rows + 18),
            label(&FAINT, HPos::Left),
        ))?;
        Ok(())
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Failure = DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>;
type Painted = Result<(), Failure>;

/// Draws on a fresh ground with a title, and gives the text its dark colours.
fn draw(title: &str, height: u32, paint: impl FnOnce(&Area<'_>) -> Painted) -> String {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let style = ("sans-serif", TITLE_SIZE).into_font().color(&TEXT.light);
        let done = area
            .fill(&GROUND.light)
            .and_then(|()| area.draw(&Text::new(title, (16, 12), style)))
            .and_then(|()| paint(&area))
            .and_then(|()| area.present());
        done.expect("drawing into a text cannot fail");
    }
    let opening = svg.find('>').map_or(0, |at| at + 1);
    svg.insert_str(opening, &format!("\n<title>{}</title>\n{}", escaped(title), style_sheet()));
    // Sizes scale with the page; the coordinates stay.
    svg.replacen(
        &format!("<svg width=\"{WIDTH}\" height=\"{height}\" "),
        &format!("<svg role=\"img\" width=\"100%\" style=\"max-width:{WIDTH}px\" "),
        1,
    )
}

/// Rules that replace every light colour on dark ground.
fn style_sheet() -> String {
    let mut rules = String::new();
    for ink in [&GROUND, &TEXT, &FAINT, &GRID, &MARK].into_iter().chain(&LINES) {
        let RGBColor(red, green, blue) = ink.light;
        let light = format!("#{red:02X}{green:02X}{blue:02X}");
        let dark = ink.dark;
        rules.push_str(&format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}\n"));
    }
    format!(
        "<style>text{{font-family:system-ui,sans-serif}}\n@media (prefers-color-scheme:dark){{\n{rules}}}</style>\n"
    )
}

/// Lowest and highest value with some room; both differ.
fn bounds(values: impl Iterator<Item = f64>, from_zero: bool) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        low = low.min(value);
        high = high.max(value);
    }
    if !low.is_finite() {
        return (0.0, 1.0);
    }
    if from_zero {
        (low, high) = (low.min(0.0), high.max(0.0));
    }
    if (high - low).abs() < f64::EPSILON {
        return (low - 0.5, high + 0.5);
    }
    let room = (high - low) * 0.06;
    if from_zero {
        return (if low < 0.0 { low - room } else { low }, if high > 0.0 { high + room } else { high });
    }
    (low, high)
}

/// A number with thousands set apart and no needless digits.
fn number(value: f64) -> String {
    let size = value.abs();
    let digits = if size >= 100.0 || value.fract() == 0.0 {
        0
    } else if size >= 1.0 {
        2
    } else {
        4
    };
    let mut text = format!("{value:.digits$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{out}{point}{rest}")
}

fn label(ink: &Ink, side: HPos) -> TextStyle<'static> {
    ("sans-serif", TEXT_SIZE).into_font().color(&ink.light).pos(Pos::new(side, VPos::Center))
}

/// Room that a small text takes; wide characters count twice.
fn text_width(text: &str) -> i32 {
    let wide: f64 = text.chars().map(|c| if c as u32 >= 0x1100 { 2.0 } else { 1.0 }).sum();
    to_pixels(wide * CHAR_WIDTH)
}

/// A text cut to the room that there is.
fn fitted(text: &str, room: i32) -> String {
    if text_width(text) <= room {
        return text.to_owned();
    }
    let mut shown = text.to_owned();
    while text_width(&shown) + text_width("…") > room && shown.pop().is_some() {}
    shown.trim_end().to_owned() + "…"
}

#[expect(clippy::cast_possible_truncation, reason = "rounded and clamped to the range before")]
fn to_pixels(value: f64) -> i32 {
    value.round().clamp(-100_000.0, 100_000.0) as i32
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> LineChart {
        LineChart {
            title: "Requests & tokens".to_owned(),
            x_label: "session".to_owned(),
            y_label: "tokens".to_owned(),
            series: vec![
                Series { name: "with".to_owned(), points: vec![(1.0, 12_000.0), (2.0, 4_000.0)] },
                Series { name: "without".to_owned(), points: vec![(1.0, 12_000.0), (2.0, f64::NAN)] },
            ],
            mark_x: Some((1.5, "cliff".to_owned())),
        }
    }

    #[test]
    fn the_same_figures_give_the_same_bytes_without_any_address() {
        let svg = lines().to_svg();
        assert_eq!(svg, lines().to_svg());
        for word in ["with", "without", "cliff", "Requests &amp; tokens", "12,000", "prefers-color-scheme"] {
            assert!(svg.contains(word), "{word}");
        }
        let addresses: Vec<&str> = svg.matches("http").collect();
        assert_eq!(addresses.len(), 1, "only the name space");
    }

    #[test]
    fn every_colour_that_is_drawn_has_a_dark_counterpart() {
        let svg = lines().to_svg();
        let (_, drawn) = svg.split_once("</style>").unwrap();
        let known: Vec<String> = [&GROUND, &TEXT, &FAINT, &GRID, &MARK]
            .into_iter()
            .chain(&LINES)
            .map(|ink| format!("#{:02X}{:02X}{:02X}", ink.light.0, ink.light.1, ink.light.2))
            .collect();
        for (at, _) in drawn.match_indices("=\"#") {
            let colour = &drawn[at + 2..at + 9];
            let line = drawn[..at].rsplit('<').next().unwrap_or_default();
            let unseen = line.contains("opacity=\"0\"");
            assert!(unseen || known.iter().any(|known| known == colour), "{colour} in <{line}");
        }
    }

    #[test]
    fn nothing_to_draw_and_values_below_zero_are_no_reason_to_fail() {
        assert!(LineChart::default().to_svg().contains("</svg>"));
        assert!(BarChart::default().to_svg().contains("</svg>"));
        let bars = vec![
            Bar { name: "down".to_owned(), value: -3.5, reference: false },
            Bar { name: "none".to_owned(), value: f64::NAN, reference: false },
            Bar { name: "up".to_owned(), value: 1_234_567.0, reference: true },
        ];
        let svg = BarChart { bars, ..BarChart::default() }.to_svg();
        assert!(svg.contains("-3.5") && svg.contains("1,234,567"), "{svg}");
    }

    #[test]
    fn a_name_that_does_not_fit_is_cut_and_says_so() {
        assert_eq!(fitted("short", 200), "short");
        let cut = fitted(&"long ".repeat(40), 200);
        assert!(cut.ends_with('…') && text_width(&cut) <= 200, "{cut}");
    }

    #[test]
    fn numbers_read_as_people_write_them() {
        let shown: Vec<String> = [0.0, 0.125, 12.5, -1_234.0, 999_999.6].into_iter().map(number).collect();
        assert_eq!(shown, ["0", "0.125", "12.5", "-1,234", "1,000,000"]);
    }
}
