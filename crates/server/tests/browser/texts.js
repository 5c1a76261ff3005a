// Chinese, the source language of the demo's model. The tests compare the page with the server's responses,
// never with a correct translation: a model trained for seconds may output anything.

export const SHORT = '一套自动驾驶解决方案';
export const OTHER = '一辆红色的汽车';
export const LONG = '一辆红色的汽车和一只大的兔子和'.repeat(11).slice(0, 155);
export const HEBREW = 'שלום עולם יפה';
export const EVIL = '<img src=x onerror="hacked=1"><script>hacked=2</script>一辆汽车';
